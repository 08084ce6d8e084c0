import type { ComponentChildren } from 'preact'
import { hello } from '../data/live.js'

interface TwoPanesProps {
  /** Beside the list: what a person chose of it, if anything. */
  readonly detail: ComponentChildren
  readonly chosen: boolean
  readonly class?: string
  /** The list, and what filters it. */
  readonly children: ComponentChildren
}

/** A list with what a person chose of it; on a narrow screen one of both. */
export const TwoPanes = ({ detail, chosen, class: more = '', children }: TwoPanesProps) => (
  <main class={`two-panes ${more}${chosen ? ' chosen' : ''}`} data-ready={hello.value && 'yes'}>
    <div class="side">{children}</div>
    {detail}
  </main>
)

/** What stands beside a list of which nothing was chosen. */
export const NothingChosen = ({ children }: { children: ComponentChildren }) => (
  <p class="empty quiet wide-only">{children}</p>
)
