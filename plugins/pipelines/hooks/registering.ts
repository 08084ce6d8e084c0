import { Refusal, type Host } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { OwnTokens } from '../../../sdk/node/access/own-tokens.js'
import { record } from '../../../sdk/node/record/record.js'
import type { ForgeHost } from '../contract.js'
import type { MappedRepo, MappedRepos } from '../forges/mapped-repos.js'
import type { Results } from '../results/results.js'

const CHECK_MS = 600_000

export interface RegistrarDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log' | 'signal'>
  readonly mapped: MappedRepos
  readonly results: Results
  readonly tokens: OwnTokens
  /** Where forges reach this sandbox; undefined: nowhere. */
  readonly publicAddress: (host: ForgeHost) => Promise<string | undefined>
  readonly changed: (repo: string) => void
  readonly now?: () => number
}

/** Registers this sandbox at forges, so that they report results. */
export class HookRegistrar {
  readonly #deps: RegistrarDeps
  readonly #turns = new KeyedMutex()
  readonly #checked = new Map<string, number>()

  constructor(deps: RegistrarDeps) {
    this.#deps = deps
  }

  /** How results of a repository arrive. */
  deliveryOf(mapped: MappedRepo): 'hook' | 'poll' | 'none' {
    if (this.#deps.results.of(mapped)?.hook) return 'hook'
    return this.#checked.has(mapped.repo) ? 'poll' : 'none'
  }

  /** Registers or checks the webhook of a repository, unless that was done in the last 10 minutes. */
  async check(mapped: MappedRepo): Promise<void> {
    const now = this.#deps.now?.() ?? Date.now()
    if (now - (this.#checked.get(mapped.repo) ?? -Infinity) < CHECK_MS) return
    this.#checked.set(mapped.repo, now)
    await this.#register(mapped)
    this.#deps.changed(mapped.repo)
  }

  /** Gives the webhooks of a forge that were registered here its present secret. */
  async rewrite(host: ForgeHost): Promise<void> {
    const repos = (await this.#deps.mapped.all()).filter(each => each.host === host)
    await Promise.all(repos.map(each => this.#deps.results.of(each)?.hook && this.#register(each)))
  }

  #register(mapped: MappedRepo): Promise<void> {
    return this.#turns.with(mapped.repo, async () => {
      const { host, results, tokens, publicAddress } = this.#deps
      const before = results.of(mapped)
      const url = await publicAddress(mapped.host)
      const byHand = `enter the webhook at ${mapped.site.host} by hand (GET /ci/webhook/${mapped.host})`
      if (url === undefined) {
        await results.noteHook(mapped, undefined, `this sandbox has no public address: ${byHand}`)
        return
      }
      const { token: secret, createdAt } = tokens.of(mapped.host) ?? (await tokens.make(mapped.host))
      try {
        const client = mapped.client()
        const there = (await mapped.dialect.hooks(client, mapped.project)).find(hook => hook.url === url)
        if (there && before?.hook?.id === there.id && before.hook.secretAt === createdAt) return
        const wanted = { url, secret, ...(there && { id: there.id }) }
        const id = await mapped.dialect.putHook(client, mapped.project, wanted)
        await results.noteHook(mapped, { id, url, secretAt: createdAt })
        await this.#record('ci.hook_registered', mapped)
      } catch (error) {
        if (host.signal.aborted) return
        if (!(error instanceof Refusal)) host.log.error('registering a webhook failed', { error: String(error) })
        const why = Refusal.from(error).message.replaceAll(secret, '…')
        // A webhook that could not be given the new secret proves nothing any more.
        await results.noteHook(mapped, undefined, `${why}: ${byHand}`)
        if (before?.hookWarning === undefined) await this.#record('ci.hook_failed', mapped, why)
      }
    })
  }

  async #record(type: string, { repo, host, project }: MappedRepo, detail?: string): Promise<void> {
    const actor = 'sandbox:pipelines'
    const extra = { repo, host, project, ...(detail !== undefined && { detail: detail.slice(0, 300) }) }
    await record(this.#deps.host, { type, actor, extra })
  }
}
