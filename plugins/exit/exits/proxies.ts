import type { Host } from '../../../sdk/index.js'
import { ExitProxy } from '../proxy/exit-proxy.js'
import { exitPortOf } from '../settings/settings.js'

/** The proxies of the exits that are started: listeners of the daemon, which nothing reaches for somebody else. */
export class ExitProxies {
  readonly #host: Pick<Host, 'call'>
  readonly #proxies = new Map<string, ExitProxy>()

  constructor(host: Pick<Host, 'call'>) {
    this.#host = host
  }

  /** The proxy of an exit that is started. */
  of(id: string): ExitProxy | undefined {
    return this.#proxies.get(id)
  }

  /** Publishes the proxy of an exit. 409: something else has its port. */
  async publish(id: string): Promise<ExitProxy> {
    const known = this.#proxies.get(id)
    if (known) return known
    const proxy = await ExitProxy.listen(exitPortOf(id))
    this.#proxies.set(id, proxy)
    await this.#declare()
    return proxy
  }

  async withdraw(id: string): Promise<void> {
    const proxy = this.#proxies.get(id)
    if (!proxy) return
    this.#proxies.delete(id)
    proxy.close()
    await this.#declare()
  }

  close(): void {
    for (const proxy of this.#proxies.values()) proxy.close()
  }

  async #declare(): Promise<void> {
    const listeners = [...this.#proxies.values()].map(({ port }) => ({ host: '127.0.0.1', port }))
    await this.#host.call('kernel.listeners.set', { name: 'exit', listeners })
  }
}
