import { posix } from 'node:path'
import { pathOfRepo, Refusal, refuse } from '../../../sdk/index.js'
import type { Host } from '../../../sdk/index.js'
import { asData } from '../../../sdk/node/access/redact.js'
import type { LandConflict, TurnInput } from '../contract.js'
import type { OwnTurnInput } from '../queue/contract.js'
import type { Conversations } from './conversations.js'
import type { Turn } from '../turn/turn.js'
import type { TurnRules } from '../turn/turn-rules.js'

const HELD =
  'the work was not landed and waits on its branch: somebody who may not land, or content from outside, had a '
  + 'part in it; look at it and land it with POST /agents/{id}/land'

const ERRAND = 'land-held'
const MOST_PATHS = 30
const MOST_PATH = 300

/** The dependencies of auto-landing. */
export interface AutoLandDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log'>
  readonly conversations: Conversations
  /** Starts a turn of the sandbox's own. */
  readonly start: (input: OwnTurnInput) => Promise<unknown>
  /** Whether a turn of a conversation is running. */
  readonly runs: (conversationId: string) => boolean
  /** Asks the rules of the settings where neither the message nor the conversation says whether work lands. */
  readonly rules: Pick<TurnRules, 'mayLand'>
  /** Resolves when the daemon has started and has completed interrupted landings. */
  readonly ready: Promise<unknown>
}

/** Lands the work of completed turns whose message or conversation requests it. */
export class AutoLand {
  readonly #deps: AutoLandDeps

  constructor(deps: AutoLandDeps) {
    this.#deps = deps
  }

  /** Refuses if the sandbox runs without the group that lands. */
  async possible(): Promise<void> {
    if (await this.#deps.host.serves('POST /agents/{id}/land')) return
    refuse('unprocessable', 'autoLand: this sandbox runs without group agents, which lands work; leave autoLand out')
  }

  /** Whether the work of a completed turn could land: as its message or conversation says, else the rules decide. */
  isPossible(conversationId: string, { autoLand }: Pick<TurnInput, 'autoLand'>): boolean {
    const conversation = this.#deps.conversations.find(conversationId)
    return conversation?.branch !== undefined && (autoLand ?? conversation.autoLand ?? true)
  }

  /** Lands the work of a completed turn; work with conflicts waits for a person and never fails the turn. */
  async land(turn: Turn): Promise<void> {
    const { host, conversations, ready, rules } = this.#deps
    const {
      conversationId: id,
      log,
      record,
      message: { input },
    } = turn
    const conversation = conversations.find(id)
    if (!conversation || !this.isPossible(id, input)) return
    const asked = input.autoLand ?? conversation.autoLand
    if (asked === undefined) {
      if (!(await host.serves('POST /agents/{id}/land'))) return
      await ready
      if (!(await rules.mayLand(turn))) return
    }
    if (turn.byOutsiders || !conversation.landsAlone) {
      log.push({ kind: 'notice', level: 'warning', text: HELD, source: 'landing' })
      return log.push({ kind: 'landed', landed: false, held: true })
    }
    await ready
    const told = record.landings
    try {
      const { landed, conflicts } = await host.call('POST /agents/{id}/land', { id, force: true })
      if (record.landings === told) log.push({ kind: 'landed', landed, ...(conflicts && { conflicts }) })
      if (conflicts && input.errand !== ERRAND) void this.#askToFit(turn, conflicts)
    } catch (error) {
      const { reason, message } = Refusal.from(error)
      if (reason === 'failed')
        host.log.error('landing the work of a turn failed', { run: turn.run, error: String(error) })
      log.push({
        kind: 'notice',
        level: 'warning',
        text: `the work was not landed and waits on its branch: ${message}`,
        source: 'landing',
      })
      log.push({ kind: 'landed', landed: false })
    }
  }

  /**
   * Asks the agent once to make its work fit that was to land by itself and does not. It does not ask again after that
   * turn: then the work waits for a person. Nor does it ask where a message waited, whose turn lands the work too.
   */
  async #askToFit(turn: Turn, conflicts: readonly LandConflict[]): Promise<void> {
    const { host, start, runs } = this.#deps
    const { conversationId, run } = turn
    const { autoLand, allowedTools } = turn.message.input
    // Names of files are not the sandbox's words.
    const paths = conflicts.flatMap(({ repo, paths: some }) =>
      some.map(({ path }) => asData(posix.join(pathOfRepo(repo), path), MOST_PATH)),
    )
    if (paths.length === 0) return
    try {
      await turn.ended
      if (runs(conversationId)) return
      await start({
        ...{ conversationId, messageId: `${ERRAND}-${run}`, run: `${run}-held`, errand: ERRAND },
        unattended: !turn.message.attended,
        ...(autoLand !== undefined && { autoLand }),
        ...(allowedTools && { allowedTools }),
        prompt:
          'Your work was to land by itself and does not fit the workspace. Bring it up to date with the main line, and '
          + `resolve what is in the way in: ${paths.slice(0, MOST_PATHS).join(', ')}`,
      })
    } catch (error) {
      host.log.warn('asking an agent to make its work fit failed', {
        conversation: conversationId,
        error: String(error),
      })
    }
  }
}
