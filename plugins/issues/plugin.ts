import { randomBytes } from 'node:crypto'
import { type Contract, type Host } from '../../sdk/index.js'
import { recordingLimits } from '../../sdk/node/record/limited.js'
import { CurrentMasker } from '../../sdk/node/access/value-masker.js'
import { repeat } from '../../sdk/node/concurrency/repeat.js'
import { record } from '../../sdk/node/record/record.js'
import { issueCalls } from './calls.js'
import { issuesContract, type IssuesCalls } from './contract.js'
import { examples } from './examples.js'
import { Fixes } from './fix/fixes.js'
import { SourceMaps } from './frames/source-maps.js'
import { Ingest } from './ingest/ingest.js'
import { Issues } from './issues.js'
import { ISSUE_SOURCE, News } from './news.js'
import { Reporters } from './reporters.js'
import { IssueViews } from './view.js'

export const contract: Contract<IssuesCalls> = { ...issuesContract, examples }

const STORE_MS = 2_000
const SWEEP_MS = 24 * 3_600_000
const SALT = 'salt.json'

/** Takes what programs report, and keeps it as issues. */
export const activate = async (host: Host): Promise<void> => {
  const failed = (what: string) => (error: unknown) =>
    void (host.signal.aborted || host.log.error(`${what} failed`, { error: String(error) }))
  const secrets = new CurrentMasker(host)
  const reporters = new Reporters(host.store)
  const news = new News({ host, reporters, issues: () => issues })
  const issues: Issues = new Issues({ host, reporters, changed: (issue, told) => news.changed(issue, told) })
  const documents = await host.store.all<unknown>()
  reporters.load(documents)
  await issues.load(documents)

  const views = new IssueViews({ host, reporters, maps: new SourceMaps(), secrets, seenAt: () => issues.seenAt })
  const fixes = new Fixes({ host, issues, reporters })
  let salt = await host.files.read<{ salt: string }>(SALT)
  if (!salt) await host.files.write(SALT, (salt = { salt: randomBytes(32).toString('base64url') }))
  const limited = ({ id, label, dailyMax }: { id: number; label: string; dailyMax: number }) =>
    void record(host, { type: 'reporter.limited', actor: 'sandbox:issues', extra: { id, label, dailyMax } })
  const ingest = new Ingest({ issues, reporters, secrets, limited, ...salt })

  /** Resolves the issues that a conversation was to fix, where the fix was started with `resolveOnLand`. */
  const landed = async (conversationId: string, tips: readonly { repo: string; from: string }[]) => {
    for (const { id, state, fix, reporter } of issues.all) {
      if (fix?.conversationId !== conversationId || !fix.resolveOnLand || state !== 'open') continue
      const repo = reporters.stored(reporter)?.repo ?? 'root'
      const commit = (tips.find(each => each.repo === repo) ?? tips[0])?.from
      const change = {
        state: 'resolved',
        in: 'next-release',
        at: Date.now(),
        by: `conversation:${conversationId}`,
      } as const
      await issues.change([id], { ...change, ...(commit !== undefined && { commit }) })
      await record(host, { type: 'issue.state', actor: change.by, extra: { id, state: 'resolved' } })
    }
  }
  const begin = async () => {
    news.begin()
    for (const id of reporters.purging) await issues.purge(id)
    await fixes.forgetUnstarted()
  }
  host.on('agent.landed', ({ agentId, repos }) => void landed(agentId, repos).catch(failed('resolving an issue')))
  host.on('daemon.ready', () => void begin().catch(failed('going on with issues')))
  host.contribute('automations.sources', () => [ISSUE_SOURCE])
  repeat(host, STORE_MS, 'storing issues', () => issues.store())
  repeat(host, SWEEP_MS, 'removing old events', () => issues.sweep(Date.now()))
  host.stopping(async () => {
    news.stop()
    await issues.store()
  })
  const deps = { host, issues, reporters, views, fixes, ingest, waiting: () => news.counts() }
  const handlers = issueCalls({ ...deps, published: key => news.published(key) })
  const open = ['POST /ingest/api/{project}/envelope/', 'POST /ingest/api/{project}/store/'] as const
  await host.serve(issuesContract, recordingLimits(host, open, handlers))
}
