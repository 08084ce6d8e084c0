import { refuse, type Context, type Handlers, type Host } from '../../../sdk/index.js'
import { Budget } from '../../../sdk/node/access/budget.js'
import type { OwnTokens } from '../../../sdk/node/access/own-tokens.js'
import { parseObject } from '../../../sdk/node/files/json.js'
import { record } from '../../../sdk/node/record/record.js'
import type { CiHook, CiHookCalls, CiReport, ForgeHost } from '../contract.js'
import type { Dialect, ReportedRun } from '../forges/forge.js'
import { givenObject } from '../forges/given.js'
import { dialectOf, type MappedRepo, type MappedRepos } from '../forges/mapped-repos.js'
import type { Results } from '../results/results.js'
import type { HookRegistrar } from './registering.js'
import { provesSecret } from './proof.js'

const MOST_A_MINUTE = 600
const MOST_WRONG = 60

export interface ReportsDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log'>
  readonly mapped: MappedRepos
  readonly results: Results
  readonly tokens: OwnTokens
  readonly registrar: HookRegistrar
  /** The address of the reports of a forge. */
  readonly address: (host: ForgeHost, http?: Context['http']) => Promise<string>
  readonly changed: (key: string) => void
}

const EVENTS: { readonly [host in ForgeHost]: (report: CiReport) => string | undefined } = {
  github: report => report['x-github-event'],
  gitlab: report => report['x-gitlab-event'],
  forgejo: report => report['x-forgejo-event'] ?? report['x-gitea-event'] ?? report['x-github-event'],
  gitea: report => report['x-gitea-event'] ?? report['x-github-event'],
}

const dialectFor = (host: string): Dialect =>
  dialectOf(host) ?? refuse('not-found', 'there is no such forge: expected github, gitlab, forgejo or gitea')

/** Takes what forges report, and keeps the secrets that prove it. */
export class Reports {
  readonly #deps: ReportsDeps
  readonly #budget = new Budget(MOST_A_MINUTE, Date.now, 'of this forge')
  readonly #wrong = new Budget(MOST_WRONG)

  constructor(deps: ReportsDeps) {
    this.#deps = deps
  }

  handlers(): Handlers<CiHookCalls> {
    const { host, tokens, registrar, changed } = this.#deps
    return {
      'POST /ci/webhook/{host}': (report, context) => this.#take(report, context),
      'GET /ci/webhook/{host}': async ({ host: name }, context) => {
        const forge = dialectFor(name).host
        const token = tokens.of(forge) ?? (await tokens.make(forge))
        await record(host, { type: 'ci.hook_revealed', extra: { host: forge } }, context)
        const { lastUsedAt } = token
        return { ...(await this.#shown(forge, context)), ...(lastUsedAt !== undefined && { lastUsedAt }) }
      },
      'POST /ci/webhook/{host}/rotate': async ({ host: name }, context) => {
        const forge = dialectFor(name).host
        await tokens.make(forge)
        await registrar.rewrite(forge)
        changed('hooks')
        await record(host, { type: 'ci.hook_rotated', extra: { host: forge } }, context)
        return this.#shown(forge, context)
      },
    }
  }

  async #shown(forge: ForgeHost, { http }: Pick<Context, 'http'>): Promise<CiHook> {
    const { token, createdAt } = this.#deps.tokens.of(forge)!
    return { url: await this.#deps.address(forge, http), secret: token, createdAt }
  }

  async #take(report: CiReport, { http }: Pick<Context, 'http'>): Promise<{ ok: true; ignored?: true }> {
    const { tokens, results } = this.#deps
    const dialect = dialectFor(report.host)
    const bytes = Buffer.from(report.body ?? '', 'base64')
    const { address = '', bearer } = http ?? {}
    const secret = tokens.of(dialect.host)?.token
    if (secret === undefined || !provesSecret(dialect.host, secret, report, bytes, bearer)) {
      this.#wrong.spend(address)
      refuse('unauthenticated', 'the signature or the secret is missing or wrong')
    }
    this.#budget.spend(dialect.host)
    const found = dialect.reported(EVENTS[dialect.host](report) ?? '', givenObject(parseObject(bytes)))
    const repos = found ? await this.#reposOf(dialect.host, found) : []
    await tokens.used(dialect.host, address)
    if (!found || repos.length === 0) return { ok: true, ignored: true }
    let changed = 0
    for (const mapped of repos) changed += await results.take(mapped, [found.run], false)
    return changed > 0 ? { ok: true } : { ok: true, ignored: true }
  }

  /** The repositories of a reported project; of several forges only those at the one that the run is at. */
  async #reposOf(host: ForgeHost, { project, run }: ReportedRun): Promise<MappedRepo[]> {
    const fits = (each: MappedRepo) => each.host === host && each.project.toLowerCase() === project.toLowerCase()
    const known = (await this.#deps.mapped.all()).filter(fits)
    const found = known.length > 0 ? known : (await this.#deps.mapped.all(true)).filter(fits)
    const sites = new Set(found.map(({ site }) => site.host))
    const at = URL.parse(run.url)?.host
    return sites.size > 1 ? found.filter(({ site }) => site.host === at) : found
  }
}
