import { countText } from '../format.js'

/** How many lines a change adds and removes; nothing where that is not known. */
export const LineCounts = ({ additions, deletions }: { additions?: number; deletions?: number }) => (
  <>
    {additions !== undefined && <span class="mono plus">+{countText(additions)}</span>}{' '}
    {deletions !== undefined && <span class="mono minus">−{countText(deletions)}</span>}
  </>
)
