import { AskButton } from '../../ui/dialog.js'

/** Deletes archived conversations for good, once the person confirmed it. */
export const DeleteButton = ({ count, work }: { count: number; work: () => Promise<unknown> }) => (
  <AskButton
    label="Delete"
    about="the selected conversations"
    title={count === 1 ? 'Delete this conversation for good?' : `Delete ${count} conversations for good?`}
    work={work}
  >
    <p>Branches, transcripts and queued messages are deleted. Landed work stays. This cannot be undone.</p>
  </AskButton>
)
