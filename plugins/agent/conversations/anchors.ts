import type { Journals } from '../../../sdk/index.js'
import type { TranscriptMessage } from '../contract.js'

/** The state of one repository before a message: its commit, and the commit of the main line that it is based on. */
export interface AnchorRepo {
  readonly repo: string
  readonly tip: string
  readonly base: string
}

/** The state of a private copy, or of the shared tree, before a message. */
export interface Anchor {
  /** Shown to people and watchers: `branch:<commit of the root repository>`, or the id of a saved point. */
  readonly id: string
  /** It is a saved point of the workspace. */
  readonly shared?: boolean
  /** The run of the message, and the message's position in the record. */
  readonly run: string
  readonly index: number
  readonly repos: readonly AnchorRepo[]
}

const anchorsOf = (conversationId: string) => `anchors/${conversationId}`

/** The states conversations can be put back to. */
export class Anchors {
  readonly #journals: Pick<Journals, 'append' | 'read' | 'rewrite' | 'remove'>

  constructor(journals: Pick<Journals, 'append' | 'read' | 'rewrite' | 'remove'>) {
    this.#journals = journals
  }

  /** Stores the state before a message; replaces one of the same run. */
  async keep(conversationId: string, anchor: Anchor): Promise<void> {
    await this.#journals.append(anchorsOf(conversationId), [anchor], { flush: true })
  }

  /** The states of a conversation by the run of their message. */
  async byRun(conversationId: string): Promise<ReadonlyMap<string, Anchor>> {
    return new Map((await this.#read(conversationId)).map(anchor => [anchor.run, anchor]))
  }

  /**
   * The state before a position of the record: of the message there, or of the removed one if the record was cut there.
   */
  async before(conversationId: string, index: number, row: TranscriptMessage | undefined): Promise<Anchor | undefined> {
    const anchors = await this.#read(conversationId)
    if (!row) return anchors.findLast(anchor => anchor.index === index)
    // Only the first message of a run has a state; messages sent into the turn have other positions.
    return row.role === 'user'
      ? anchors.findLast(anchor => anchor.run === row.run && anchor.index === index)
      : undefined
  }

  /** Deletes the states of messages after a position of the record; keeps that of the position. */
  async cut(conversationId: string, index: number): Promise<void> {
    const kept = (await this.#read(conversationId)).filter(anchor => anchor.index <= index)
    await this.#journals.rewrite(anchorsOf(conversationId), kept)
  }

  async forget(conversationId: string): Promise<void> {
    await this.#journals.remove(anchorsOf(conversationId))
  }

  #read(conversationId: string): Promise<Anchor[]> {
    return this.#journals.read<Anchor>(anchorsOf(conversationId))
  }
}

/** Adds to rows the saved states that a rewind can restore. */
export const withCheckpoints = (
  rows: readonly TranscriptMessage[],
  anchors: ReadonlyMap<string, Anchor>,
): TranscriptMessage[] =>
  rows.map(({ checkpointId: _old, ...row }) => {
    const anchor = row.role === 'user' && row.run !== undefined ? anchors.get(row.run) : undefined
    return anchor?.index === row.index ? { ...row, checkpointId: anchor.id } : row
  })
