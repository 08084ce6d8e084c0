import type { Host } from '../../sdk/index.js'
import { record } from '../../sdk/node/record/record.js'
import type { CatalogSource } from '../automations/contract.js'
import type { IssuesWaiting } from './contract.js'
import type { Issues, IssueNews } from './issues.js'
import type { Reporters } from './reporters.js'
import type { StoredIssue } from './stored.js'
import { folderOfReporter, isWaiting } from './view.js'

const PROVIDER = 'issues'
const SOON_MS = 250
const TYPES = { new: 'issue_new', regressed: 'issue_regressed' } as const

/** What automations can listen to. */
export const ISSUE_SOURCE: CatalogSource = {
  ...{ provider: PROVIDER, label: 'Issues', requires: [], enabled: true },
  events: [
    { value: TYPES.new, label: 'A program reports a new fault' },
    { value: TYPES.regressed, label: 'A resolved fault came again' },
  ],
  channel: { label: 'Reporter', placeholder: '1', hint: 'The number of a reporter; empty for all' },
  starterPrompt: 'Find out what causes this fault, and say how it could be fixed.',
}

export interface NewsDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'emit' | 'log' | 'signal'>
  readonly reporters: Pick<Reporters, 'stored'>
  readonly issues: () => Issues
}

/** Notifies people, watchers and automations of issues. */
export class News {
  readonly #deps: NewsDeps
  readonly #waiting: IssueNews[] = []
  #isReady = false
  #soon: NodeJS.Timeout | undefined

  constructor(deps: NewsDeps) {
    this.#deps = deps
  }

  /** The daemon is ready: what happened before is told now. */
  begin(): void {
    this.#isReady = true
    for (const news of this.#waiting.splice(0)) void this.#tell(news)
  }

  stop(): void {
    clearTimeout(this.#soon)
  }

  /** An issue changed; `news`: its first event, or one that opened it again. */
  changed(issue: StoredIssue, news?: IssueNews): void {
    this.published(issue.id, this.#deps.reporters.stored(issue.reporter)?.repo)
    if (!news) return
    if (this.#isReady) void this.#tell(news)
    else this.#waiting.push(news)
  }

  /** Notifies watchers of what changed, and soon of how many issues wait. */
  published(key: string, repo?: string): void {
    const { host } = this.#deps
    const within = repo === undefined ? undefined : [folderOfReporter({ repo })]
    void host
      .call('kernel.events.publish', { domain: 'issues', key, ...(within && { within }) })
      .catch(error => this.#failed('publishing a change', error))
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined
      host.emit('issues.waiting', this.counts())
    }, SOON_MS).unref()
  }

  /** How many issues wait for a person, by the folder of their repository. */
  counts(): IssuesWaiting {
    const issues = this.#deps.issues()
    const counts = new Map<string | undefined, number>()
    for (const issue of issues.all) {
      if (!isWaiting(issue, issues.seenAt)) continue
      const repo = this.#deps.reporters.stored(issue.reporter)?.repo
      const within = repo === undefined ? undefined : folderOfReporter({ repo })
      counts.set(within, (counts.get(within) ?? 0) + 1)
    }
    return { waiting: [...counts].map(([within, count]) => ({ ...(within !== undefined && { within }), count })) }
  }

  async #tell({ issue, effect, seq }: IssueNews): Promise<void> {
    if (effect === 'reopened') return
    const { host, reporters } = this.#deps
    const { id, title, level, culprit, reporter, count } = issue
    const { label = 'a program' } = reporters.stored(reporter) ?? {}
    try {
      const extra = { id, reporter, label }
      await record(host, { type: `issue.${effect}`, actor: 'sandbox:issues', source: PROVIDER, title, extra })
      if (!(await host.serves('automations.dispatch'))) return
      await host.call('automations.dispatch', {
        ...{ provider: PROVIDER, type: TYPES[effect], id: `${id}-${seq}`, channelId: String(reporter) },
        ...{ author: { id: String(reporter), name: label }, content: title, timestamp: new Date().toISOString() },
        extra: { threadId: id, issue: id, level, count, ...(culprit !== undefined && { culprit }) },
      })
    } catch (error) {
      this.#failed('telling of an issue', error)
    }
  }

  #failed(what: string, error: unknown): void {
    const { host } = this.#deps
    if (!host.signal.aborted) host.log.error(`${what} failed`, { error: String(error) })
  }
}
