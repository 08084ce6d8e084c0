import { request } from 'node:http'
import { Refusal, refuse, type Host } from '../../sdk/index.js'
import { ownEnv } from '../../sdk/node/programs/own-programs.js'
import { programFile } from '../../sdk/node/programs/package.js'
import { PipedProcess } from '../../sdk/node/programs/piped-process.js'
import { record } from '../../sdk/node/record/record.js'
import type { TranslatorAccess, TranslatorCounts, TranslatorStatus } from './contract.js'
import { RunGrants, type GrantAsked } from './process/grants.js'
import { Leasing } from './process/leasing.js'
import { ProcessStamps } from './process/stamp.js'
import { servedNow, type ServedNow } from './process/table.js'
import { TRANSLATOR_LIMITS, TranslatorProcess } from './process/translator-process.js'

const CHILD = programFile('plugins/routed/serving/translator-child.js')
const HOST = '127.0.0.1'
const WAIT_MS = 15_000
const HEALTH_MS = 2_000
/** Which proxy of the deployment leads outside, and whom the system trusts: no more of the daemon's environment. */
const PASSED = /^(?:(?:https?|all|no)_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_(?:FILE|DIR))$/i

/** The translator of this sandbox: its process, what it serves, and for whom. */
export class Translator {
  readonly #host: Host
  readonly #grants = new RunGrants()
  readonly #leasing: Leasing
  readonly #process: TranslatorProcess
  readonly #stamps: ProcessStamps
  #served: ServedNow = { providers: [], serves: [] }
  #reading: Promise<void> = Promise.resolve()

  constructor(host: Host, limits = TRANSLATOR_LIMITS) {
    this.#host = host
    this.#leasing = new Leasing(host, this.#grants)
    this.#stamps = new ProcessStamps(host.files)
    this.#process = new TranslatorProcess({
      limits,
      start: async port => {
        this.#leasing.reset()
        return new PipedProcess(await walled(port), 'own')
      },
      healthy,
      wanted: () => this.#wanted,
      table: () => ({ providers: this.#served.providers, grants: this.#grants.table }),
      heard: (news, send) => {
        if (news.news === 'begun') this.#process.asked()
        this.#leasing.hear(news, send)
      },
      started: async (pid, port) => {
        await this.#stamps.keep(pid)
        // Loops of the sandbox may ask it; requests made for others may not.
        await host.call('kernel.listeners.set', {
          name: 'translator',
          listeners: [{ host: HOST, port }],
          programs: true,
        })
      },
      changed: () => this.#changed(),
      happened: (type, detail) => {
        if (detail !== undefined) host.log.warn('the translator failed', { detail })
        const extra = detail === undefined ? {} : { detail }
        void record(host, { type, outcome: detail === undefined ? 'ok' : 'error', extra })
      },
    })
    host.stopping(() => this.#process.close())
  }

  /** Ends the process of the last daemon, then serves what there is. */
  async begin(): Promise<void> {
    if (await this.#stamps.endLast()) this.#host.log.info('the translator of the last daemon was ended')
    void this.refresh()
  }

  /** Reads anew what is to be served; a request that begins afterwards is served by it. */
  refresh(): Promise<void> {
    this.#reading = this.#reading.then(async () => {
      try {
        const before = JSON.stringify(this.#served)
        this.#served = await servedNow(this.#host)
        this.#process.sync()
        if (JSON.stringify(this.#served) !== before) this.#changed()
      } catch (error) {
        if (!this.#host.signal.aborted)
          this.#host.log.warn('reading what the translator serves failed', { error: String(error) })
      }
    })
    return this.#reading
  }

  get status(): TranslatorStatus {
    const { state, detail, restarts } = { state: this.#process.state, ...this.#restartsOf() }
    const running = state.state === 'running' ? state : undefined
    const base = running && `http://${HOST}:${running.port}`
    return {
      state: state.state,
      ...(base !== undefined && { chatCompletions: `${base}/v1`, messages: base, since: running!.since }),
      restarts,
      ...(state.state === 'failed' && { nextTryAt: state.nextTryAt }),
      ...(detail !== undefined && { detail }),
      serves: structuredClone([...this.#served.serves]),
      requests: { ...this.#leasing.requests },
    }
  }

  /** Opens a bearer for a run; waits for the process. */
  async endpointFor(asked: GrantAsked & { readonly model: string }): Promise<TranslatorAccess> {
    const { provider, model, ...granted } = asked
    // Definitions and lists of models change without an event.
    await this.refresh()
    if (!this.#serves(provider))
      refuse('not-found', `the translator does not serve ${provider.slice(0, 60)}: connect an account of it first`)
    const bearer = this.#grants.open({ ...granted, provider })
    const port = await this.#process.whenRunning(WAIT_MS)
    if (port === undefined) {
      this.#grants.close(bearer)
      const why = this.#process.detail === undefined ? '' : `: ${this.#process.detail}`
      throw new Refusal('unavailable', `the translator does not run now${why}`)
    }
    return { baseUrl: `http://${HOST}:${port}`, bearer, model: `${provider}/${model}` }
  }

  release(bearer: string): TranslatorCounts | undefined {
    const counts = this.#grants.close(bearer)
    if (counts) this.#process.sync()
    return counts
  }

  get #wanted(): boolean {
    return this.#grants.size > 0 || this.#served.providers.some(({ leased }) => leased)
  }

  #serves(provider: string): boolean {
    return this.#served.providers.some(({ id }) => id === provider)
  }

  #restartsOf(): { restarts: number; detail?: string } {
    const { restarts, detail } = this.#process
    return { restarts, ...(detail !== undefined && { detail }) }
  }

  #changed(): void {
    this.#host
      .call('kernel.events.publish', { domain: 'routed' })
      .catch(error => this.#host.log.warn('publishing a change of the translator failed', { error: String(error) }))
  }
}

/** The process, outside of a wall: it runs the sandbox's own code alone. */
const walled = async (port: number) => ({
  program: process.execPath,
  args: [CHILD, String(port)],
  cwd: '/',
  env: await ownEnv(
    Object.fromEntries(
      Object.entries(process.env).flatMap(([name, value]) => (value && PASSED.test(name) ? [[name, value]] : [])),
    ),
  ),
  enforced: false,
})

const healthy = (port: number, signal: AbortSignal): Promise<boolean> =>
  new Promise(resolve => {
    const asked = request({ host: HOST, port, path: '/health', agent: false, timeout: HEALTH_MS, signal })
    asked.on('response', answer => {
      answer.resume()
      resolve(answer.statusCode === 200)
    })
    asked.on('timeout', () => asked.destroy())
    asked.on('error', () => resolve(false))
    asked.on('close', () => resolve(false))
    asked.end()
  })
