import { Refusal, type Events, type Host } from '../../sdk/index.js'
import { record } from '../../sdk/node/record/record.js'
import type { Automation, WorkspaceEventName, WorkspaceTrigger } from './contract.js'
import type { StoredDefinitions } from './definitions/definitions.js'
import type { Fires } from './fires/fires.js'

/** The dependencies of workspace triggers. */
export interface WorkspaceEventsDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log' | 'on' | 'signal'>
  readonly definitions: () => Promise<Pick<StoredDefinitions, 'all'>>
  readonly fires: Fires
}

/** One repository with work: `git -C <dir> diff <from>` shows it. */
interface OpenSpan {
  readonly repo: string
  readonly from: string
  readonly dir: string
}

/** What a workspace trigger gets as its payload. */
interface WorkspaceEvent {
  readonly event: WorkspaceEventName
  readonly agentId: string
  readonly title?: string
  readonly branch?: string
  readonly outcome: 'landed' | 'conflict' | 'ready' | 'idle' | 'error'
  readonly repos: readonly OpenSpan[]
  readonly deps?: {
    readonly project: string
    readonly command: string
    readonly exitCode: number
    readonly attempt: number
    readonly logTail: string
  }
}

/** The agent of events that no agent caused. */
const NOBODY = 'workspace'
const MOST_TAIL = 8_000

/** Fires automations for events of the workspace. */
export class WorkspaceEvents {
  readonly #deps: WorkspaceEventsDeps

  constructor(deps: WorkspaceEventsDeps) {
    this.#deps = deps
  }

  /** Begins to listen. */
  start(): void {
    const { host } = this.#deps
    const after = (what: string, work: Promise<unknown>) =>
      void work.catch(
        error => host.signal.aborted || host.log.warn(`firing for ${what} failed`, { error: String(error) }),
      )
    host.on('agent.landed', ({ repos, ...landed }) =>
      after('agent.landed', this.#fire({ event: 'agent.landed', ...landed, repos })),
    )
    host.on('turn.settled', settled => {
      // An automation that turns start must not start itself.
      const fire = this.#deps.fires.live(settled.run)?.fire
      if (fire?.agentId === undefined) after('turn.settled', this.#settled(settled))
    })
    host.on('deps.broken', ({ project, command, exitCode = -1, attempt, logTail }) => {
      const deps = { project, command, exitCode, attempt, logTail: logTail.slice(-MOST_TAIL) }
      after('deps.broken', this.#installed('deps.broken', deps))
    })
    host.on('deps.fixed', ({ project, command, attempt }) => {
      const deps = { project, command, exitCode: 0, attempt, logTail: '' }
      after('deps.fixed', this.#installed('deps.fixed', deps))
    })
  }

  async #settled({ conversationId, end, branch }: Events['turn.settled']): Promise<void> {
    if ((await this.#waiting('turn.settled')).length === 0) return
    const found = await this.#deps.host.call('agent.conversation', { id: conversationId }).catch((error: unknown) => {
      if (Refusal.from(error).reason === 'not-found') return undefined
      throw error
    })
    if (!found) return
    const { title, repos, conflicts = [] } = found.conversation
    const done = conflicts.length > 0 ? 'conflict' : branch === undefined ? 'idle' : 'ready'
    await this.#fire({
      event: 'turn.settled',
      agentId: conversationId,
      ...(title !== undefined && { title }),
      ...(branch !== undefined && { branch }),
      outcome: end === 'failed' ? 'error' : done,
      repos: branch === undefined ? [] : repos.map(spanOf),
    })
  }

  async #installed(event: 'deps.broken' | 'deps.fixed', deps: NonNullable<WorkspaceEvent['deps']>): Promise<void> {
    const outcome = event === 'deps.broken' ? 'error' : 'ready'
    const fired = await this.#fire({ event, agentId: NOBODY, outcome, repos: [], deps })
    if (fired > 0 || event !== 'deps.broken') return
    const extra = { project: deps.project }
    await record(this.#deps.host, { type: 'deps.fix_unarmed', audience: 'viewer', outcome: 'ok', extra })
  }

  /** The automations that an event fires. */
  async #waiting(event: WorkspaceEventName): Promise<Automation[]> {
    const { all } = await this.#deps.definitions()
    return [...all.values()].flatMap(({ automation, accepted }) => {
      const { trigger, enabled } = automation
      return accepted && enabled && trigger.kind === 'workspace' && trigger.event === event ? [automation] : []
    })
  }

  async #fire(event: WorkspaceEvent): Promise<number> {
    const matching = (await this.#waiting(event.event)).filter(({ trigger }) =>
      concerns(trigger as WorkspaceTrigger, event),
    )
    const payload = JSON.stringify(event, undefined, 1)
    // What a program printed is not this sandbox's word.
    const foreign = event.deps ? { foreign: 'a program that installs dependencies' } : {}
    for (const automation of matching) {
      const order = { cause: 'workspace', agentId: event.agentId, payload, ...foreign } as const
      await this.#deps.fires.accept(automation, order, 'replace')
    }
    return matching.length
  }
}

const spanOf = ({ repo, base, landedTip }: { repo: string; base: string; landedTip?: string }): OpenSpan => ({
  repo,
  from: landedTip ?? base,
  dir: repo === 'root' ? '.' : repo,
})

/** Whether an event is about the repository of a trigger. */
const concerns = ({ repo }: WorkspaceTrigger, { repos, deps }: WorkspaceEvent): boolean => {
  if (repo === undefined) return true
  if (deps) return repo === 'root' || deps.project === repo || deps.project.startsWith(`${repo}/`)
  return repos.some(one => one.repo === repo)
}
