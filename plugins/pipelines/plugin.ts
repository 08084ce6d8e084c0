import type { Context, Contract, Host } from '../../sdk/index.js'
import { recordingLimits } from '../../sdk/node/record/limited.js'
import { OwnTokens } from '../../sdk/node/access/own-tokens.js'
import { CurrentMasker } from '../../sdk/node/access/value-masker.js'
import { repeat } from '../../sdk/node/concurrency/repeat.js'
import { publicAddress } from '../../sdk/node/pages/public-address.js'
import { pipelineCalls } from './calls.js'
import { Checks, checkRunId } from './checks/checks.js'
import { pipelinesContract, type ForgeHost, type PipelinesCalls } from './contract.js'
import { examples } from './examples.js'
import { PipelineFixes } from './fix/fixes.js'
import { MappedRepos } from './forges/mapped-repos.js'
import { HookRegistrar } from './hooks/registering.js'
import { Reports } from './hooks/reports.js'
import { Jobs } from './logs/jobs.js'
import { CI_SOURCE, CiNews } from './news.js'
import { Results } from './results/results.js'
import { Watching } from './results/watching.js'
import { RunFinder } from './run-finder.js'

export const contract: Contract<PipelinesCalls> = { ...pipelinesContract, examples }

const TICK_MS = 5_000
/** The document that says that a forge was connected. */
const WATCHING = 'watching'

/** Watches the runs of pipelines at forges, and the checks before a push. */
export const activate = async (host: Host): Promise<void> => {
  const failed = (what: string) => (error: unknown) =>
    void (host.signal.aborted || host.log.error(`${what} failed`, { error: String(error) }))
  /** Where forges report, also where nothing else is served in public. */
  const base = async (http?: Context['http']) => {
    const { url } = host.place.publicPages
    return publicAddress(
      { ...host, place: { ...host.place, publicPages: { ...(url !== undefined && { url }) } } },
      http,
    )
  }
  const pathOf = (forge: ForgeHost) => `/ci/webhook/${forge}`

  const mapped = new MappedRepos(host, () => void watch().catch(failed('watching pipelines')))
  const news: CiNews = new CiNews({ host, results: () => results, mapped })
  const results: Results = new Results({
    host,
    changed: (repo, runId) => news.run(repo, runId),
    pending: repo => news.pending(repo),
  })
  const changed = (repo: string) => news.published('ci', repo, repo)
  const tokens = new OwnTokens(host.store, Date.now)
  const secrets = new CurrentMasker(host)
  const checks = new Checks({
    host,
    masked: async text => (await secrets.now()).masker.mask(text),
    changed: check => {
      news.run(check.repo, checkRunId(check))
      news.published('prepush', 'check', check.repo)
    },
  })
  const documents = await host.store.all<unknown>()
  tokens.load(documents)
  results.load(documents)
  await checks.load(documents)

  const registrar = new HookRegistrar({
    ...{ host, mapped, results, tokens, changed },
    publicAddress: async forge => {
      const { base: at, reach } = await base()
      return reach === 'public' ? `${at}${pathOf(forge)}` : undefined
    },
  })
  const watching = new Watching({ host, results, changed })
  const jobs = new Jobs({ host, secrets })
  const runs = new RunFinder({ host, checks, mapped, results, watching, registrar })
  const fixes = new PipelineFixes({ host, checks, results, jobs })
  const reports = new Reports({
    ...{ host, mapped, results, tokens, registrar },
    address: async (forge, http) => `${(await base(http)).base}${pathOf(forge)}`,
    changed: key => news.published('ci', key),
  })

  /** Registers webhooks, and asks the forges whose turn it is. */
  const tick = async () => {
    const repos = await mapped.all()
    await Promise.all(
      repos.map(async each => {
        await registrar.check(each)
        await watching.poll(each, registrar.deliveryOf(each) === 'hook')
      }),
    )
  }
  let isTicking = false
  let isWatching = false
  /** Begins to watch: a sandbox without a forge does not look for one. */
  const watch = async () => {
    if (isWatching) return
    isWatching = true
    await host.store.set(WATCHING, true)
    repeat(host, TICK_MS, 'watching pipelines', async () => {
      if (isTicking) return
      isTicking = true
      await tick().finally(() => (isTicking = false))
    })
  }
  const begin = async () => {
    news.begin()
    await fixes.forgetUnstarted()
    if (documents.some(([key]) => key === WATCHING)) await watch()
  }
  host.on('capability.connected', ({ kind }) => {
    mapped.forget()
    if (kind === 'cli') void watch().catch(failed('watching pipelines'))
  })
  host.on('capability.removed', () => mapped.forget())
  host.on('daemon.ready', () => void begin().catch(failed('going on with pipelines')))
  host.contribute('automations.sources', () => [CI_SOURCE])
  host.stopping(async () => news.stop())
  await host.serve(
    pipelinesContract,
    recordingLimits(
      host,
      ['POST /ci/webhook/{host}'],
      pipelineCalls({ host, checks, results, watching, runs, jobs, fixes, reports, news }),
    ),
  )
}
