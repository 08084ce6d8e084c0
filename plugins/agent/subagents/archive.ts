import type { Journals } from '../../../sdk/index.js'
import { refuse } from '../../../sdk/index.js'
import type { TranscriptMessage } from '../contract.js'
import { framesOf } from '../turn/frames/frame-log.js'
import type { Frame } from '../turn/frames/frames.js'
import { isUnder } from './frames.js'
import type { SubagentSession } from './session.js'
import { RunRecord, type Row } from '../turn/run-record.js'
import type { Turn } from '../turn/turn.js'

/** Which subagents to list. */
export interface SubagentQuery {
  readonly conversationId?: string
  readonly status?: 'live' | 'all'
  readonly limit?: number
  /** Only those that started before it. */
  readonly before?: number
}

interface SubagentArchiveDeps {
  readonly journal: Journals
  /** The running turns. */
  readonly live: () => readonly Turn[]
}

interface Kept {
  readonly run: string
  readonly sessions: readonly SubagentSession[]
}

const SESSIONS = 'helper-sessions'
const KEPT_MS = 7 * 24 * 3_600_000
const MOST_PROMPT = 64 * 1024
const rowsOf = (run: string) => `helpers/${run}`

/** The subagents of running turns, and of turns that ended within a week. */
export class SubagentArchive {
  readonly #deps: SubagentArchiveDeps
  readonly #kept = new Map<string, readonly SubagentSession[]>()

  constructor(deps: SubagentArchiveDeps) {
    this.#deps = deps
  }

  async load(): Promise<void> {
    for (const { run, sessions } of await this.#deps.journal.read<Kept>(SESSIONS)) this.#kept.set(run, sessions)
  }

  /** Stores the subagents of a turn, after all its frames are written; can be repeated. */
  async keep(turn: Turn): Promise<void> {
    const { journal } = this.#deps
    const { run } = turn
    if (!turn.record.helpers.all.length || this.#kept.has(run)) return
    const sessions = sessionsOf(turn)
    const frames = await framesIn(journal, run)
    // Rows first: a session that is listed can be read.
    await journal.rewrite(
      rowsOf(run),
      turn.record.helpers.all.map(({ id }) => ({ id: `${run}:${id}`, rows: helperRows(turn, id, frames) })),
    )
    this.#kept.set(run, sessions)
    await journal.append(SESSIONS, [{ run, sessions } satisfies Kept])
  }

  /** Subagents, newest first; `next` begins the page after this one. */
  list({ conversationId, status = 'all', limit = 100, before = Infinity }: SubagentQuery): {
    sessions: SubagentSession[]
    next?: number
  } {
    const live = this.#deps
      .live()
      .filter(({ run }) => !this.#kept.has(run))
      .flatMap(sessionsOf)
    const all =
      status === 'live'
        ? live.filter(({ endedAt }) => endedAt === undefined)
        : [...[...this.#kept.values()].flat(), ...live]
    const found = all
      .filter(
        session =>
          session.startedAt < before && (conversationId === undefined || session.conversationId === conversationId),
      )
      .reverse()
      .sort((one, other) => other.startedAt - one.startedAt)
    // Subagents with the same start are on one page, because the next page begins before it.
    const end = found.findIndex(({ startedAt }, at) => at >= limit && startedAt !== found[limit - 1]!.startedAt)
    const sessions = end === -1 ? found : found.slice(0, end)
    return { sessions: structuredClone(sessions), ...(end !== -1 && { next: sessions.at(-1)!.startedAt }) }
  }

  /** The transcript of one subagent: from the frames during its turn, then from the archive. */
  async transcript(id: string): Promise<{ conversationId: string; messages: TranscriptMessage[] }> {
    const { journal, live } = this.#deps
    const turn = live().find(({ run }) => isUnder(run, id) && !this.#kept.has(run))
    const own = turn && id.slice(turn.run.length + 1)
    if (turn && own !== undefined && turn.record.helpers.get(own)) {
      await turn.log.settled()
      return {
        conversationId: turn.conversationId,
        messages: numbered(helperRows(turn, own, await framesIn(journal, turn.run))),
      }
    }
    const [run, sessions] = [...this.#kept].find(([, sessions]) => sessions.some(session => session.id === id)) ?? []
    const lines = run === undefined ? [] : await journal.read<{ id: string; rows: Row[] }>(rowsOf(run))
    const line =
      lines.find(line => line.id === id)
      ?? refuse(
        'not-found',
        `there is no subagent ${JSON.stringify(id.slice(0, 120))}, or it ended more than a week ago`,
      )
    return { conversationId: sessions![0]!.conversationId, messages: numbered(line.rows) }
  }

  /** Removes the subagents of a deleted conversation. */
  async forget(conversationId: string): Promise<void> {
    await this.#drop(sessions => sessions[0]?.conversationId === conversationId)
  }

  /** Removes subagents that ended more than a week ago, and rows without a session. */
  async sweep(): Promise<void> {
    const oldest = Date.now() - KEPT_MS
    await this.#drop(sessions => sessions.every(({ endedAt, activityAt }) => (endedAt ?? activityAt) < oldest))
    const { journal, live } = this.#deps
    const names = await journal.list(rowsOf(''))
    const known = new Set([...this.#kept.keys(), ...live().map(({ run }) => run)].map(rowsOf))
    for (const name of names) if (!known.has(name)) await journal.remove(name)
  }

  async #drop(gone: (sessions: readonly SubagentSession[]) => boolean): Promise<void> {
    const { journal } = this.#deps
    const runs = [...this.#kept].filter(([, sessions]) => gone(sessions)).map(([run]) => run)
    if (!runs.length) return
    for (const run of runs) this.#kept.delete(run)
    await journal.rewrite(
      SESSIONS,
      [...this.#kept].map(([run, sessions]): Kept => ({ run, sessions })),
    )
    for (const run of runs) await journal.remove(rowsOf(run))
  }
}

const framesIn = async (journal: Pick<Journals, 'read'>, run: string): Promise<Frame[]> =>
  (await journal.read<{ event: Frame }>(framesOf(run))).map(({ event }) => event)

const sessionsOf = (turn: Turn): SubagentSession[] => {
  const {
    record: { helpers },
    run,
    conversationId,
    entry,
  } = turn
  return helpers.all.map(({ id, subagentKind, ...state }) => ({
    ...state,
    id: `${run}:${id}`,
    kind: subagentKind,
    conversationId,
    provider: entry.fields.provider,
    spawnDepth: helpers.above(id).length + 1,
  }))
}

/** The rows of one subagent, like those of a turn; subagents below it are children of their calls. */
const helperRows = (turn: Turn, helper: string, frames: readonly Frame[]): readonly Row[] => {
  const {
    record: { helpers },
    run,
    message,
  } = turn
  const state = helpers.get(helper)!
  const text = helpers.asked(helper) ?? state.description ?? ''
  const record = new RunRecord({
    run,
    text: text.slice(0, MOST_PROMPT).toWellFormed(),
    sentAt: state.startedAt,
    by: message.by,
    messageId: helper,
  })
  for (const frame of frames) {
    if ('parentToolUseId' in frame && frame.parentToolUseId !== undefined) {
      const { parentToolUseId, ...own } = frame
      if (parentToolUseId === helper) record.add(own)
      else if (isUnder(helper, parentToolUseId)) record.add(frame)
    } else if (frame.kind === 'tool_call_update' && isUnder(helper, frame.id)) record.add(frame)
  }
  if (state.error !== undefined) record.add({ kind: 'error', message: state.error })
  return record.rows
}

const numbered = (rows: readonly Row[]): TranscriptMessage[] => rows.map((row, index) => ({ index, ...row }))
