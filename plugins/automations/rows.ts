import type { Host } from '../../sdk/index.js'
import type { OwnTokens } from '../../sdk/node/access/own-tokens.js'
import type { AutomationCatalog, AutomationRow } from './contract.js'
import type { Definition } from './definitions/definitions.js'
import type { Switches } from './definitions/switches.js'
import type { Fires } from './fires/fires.js'
import type { RunHistory } from './fires/run-history.js'
import { triggerProblem } from './listeners/sources.js'
import type { Scheduler } from './schedule/scheduler.js'
import { isBare, strangerProblem } from './webchat/strangers.js'

/** Where the facts of a row come from. */
export interface RowDeps {
  readonly host: Pick<Host, 'call' | 'serves'>
  readonly history: RunHistory
  readonly fires: Fires
  readonly scheduler: Scheduler
  readonly tokens: OwnTokens
  readonly switches: Switches
  readonly persona: (id: string) => Promise<boolean>
}

/** Which runs a row has. */
export interface RowRuns {
  readonly limit: number
  readonly before?: number
}

const UNACCEPTED =
  'it came with the code, or its file was edited: it fires once a maintainer has saved it with POST /automations'

/** An automation as it stands. */
export const automationRow = async (
  { host, history, fires, scheduler, tokens, switches, persona }: RowDeps,
  { automation, accepted }: Definition,
  catalog: Pick<AutomationCatalog, 'sources'>,
  { limit, before }: RowRuns,
): Promise<AutomationRow> => {
  const { id, trigger, enabled, actsAs } = automation
  const { since = 0, disabledBy } = switches.of(id)
  const current = fires.current(id)
  const queued = fires.queued(id)
  const [token, lastError, missed] = [tokens.of(id), history.lastError(id), scheduler.missed(id)]
  const next = accepted && enabled && trigger.kind === 'schedule' ? scheduler.next(id, trigger) : undefined
  const isGone = actsAs !== undefined && !isBare(automation) && !(await persona(actsAs))
  const gone = isGone ? `actsAs: the persona ${actsAs} is gone` : undefined
  const problem = accepted
    ? (triggerProblem(trigger, catalog) ?? gone ?? (await strangerProblem(host, automation)))
    : UNACCEPTED
  return {
    ...automation,
    runs: history.of(id, limit, before),
    failures: history.failures(id, since),
    ...(next !== undefined && { nextRun: next }),
    ...(current && {
      running: { conversationId: current.conversationId, run: current.run, since: current.startedAt ?? current.at },
    }),
    ...(queued > 0 && { queued }),
    ...(token && { tokenAt: token.createdAt }),
    ...(lastError !== undefined && { lastError }),
    ...(missed > 0 && { missed }),
    ...(!enabled && disabledBy !== undefined && { disabledBy }),
    ...(problem !== undefined && { problem }),
  }
}
