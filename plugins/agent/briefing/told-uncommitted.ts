import type { Host, Reach } from '../../../sdk/index.js'
import type { UncommittedChanges } from '../../git/contract.js'
import type { Conversation } from '../contract.js'
import type { TurnNote } from '../turn/frames/frames.js'
import type { Turn } from '../turn/turn.js'
import { uncommittedChanges, uncommittedNote } from './uncommitted.js'

/**
 * Tells turns what of the workspace is not committed: the first of a conversation, and in a private copy others when
 * that changed.
 */
export class ToldUncommitted {
  readonly #host: Pick<Host, 'call' | 'serves' | 'log'>
  /** What conversations were told last. */
  readonly #told = new Map<string, string>()

  constructor(host: Pick<Host, 'call' | 'serves' | 'log' | 'on'>) {
    this.#host = host
    host.on('conversation.gone', ({ conversationId }) => void this.#told.delete(conversationId))
  }

  /** Begins to read it, for a turn that is being prepared. */
  async read({ entry, record }: Turn): Promise<readonly UncommittedChanges[]> {
    // A script knows what it does, and a turn that goes on was told.
    return entry.fields.provider === 'script' || record.prepared ? [] : uncommittedChanges(this.#host)
  }

  /** The note for the model of a turn; people get a notice in the first turn of a private copy. */
  of(
    turn: Turn,
    { id, branch, repos }: Pick<Conversation, 'id' | 'branch' | 'repos'>,
    folders: Reach,
    changes: readonly UncommittedChanges[],
  ): TurnNote | undefined {
    const copied = branch === undefined ? undefined : repos.map(({ repo }) => repo)
    const found = uncommittedNote(changes, { id, copied, folders })
    const before = this.#told.get(id) ?? ''
    const text = found?.note.text ?? ''
    if (text === '') this.#told.delete(id)
    else this.#told.set(id, text)
    // Later its own work stands among what is not committed in the shared tree.
    if (!found || (turn.index > 0 && (!copied || text === before))) return undefined
    if (turn.index === 0 && found.notice !== undefined)
      turn.log.push({ kind: 'notice', level: 'info', text: found.notice, source: 'copies' })
    return found.note
  }
}
