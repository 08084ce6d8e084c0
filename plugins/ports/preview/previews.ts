import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { refuse, type Host } from '../../../sdk/index.js'
import { dialListener, type KnownListener } from '../../../sdk/node/network/dial-listener.js'
import { takersAt, type Listening, type Loopback } from '../../../sdk/node/network/socket-table.js'
import type { Forwards } from '../forwards/forwards.js'
import type { PortPlace, PortScan } from '../scan/scan.js'
import type { Labels, ProgramListener } from './labels.js'
import { hostLabel, hostName, previewUrl, type NameZone } from './names.js'
import { NOTHING_FORWARDED, notListening, NOT_RUNNING, STARTING } from './pages.js'
import { speaksHttps } from './probe.js'
import { PreviewFault, PreviewListener, type PreviewDirectory, type PreviewServer } from './server.js'
import type { ForwardSlot, LabelRecord, PreviewStore } from './store.js'

const LOOPBACKS: readonly Loopback[] = ['127.0.0.1', '::1']
/** Requests within this time share the look for the port of a program: each new connection is checked anyway. */
const FRESH_MS = 1_000

/** The dependencies of the previews. */
export interface PreviewsDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'place'>
  readonly store: PreviewStore
  readonly scan: PortScan
  readonly forwards: () => Forwards
  readonly labels: () => Labels
}

interface FoundServer {
  readonly at: number
  readonly server: Promise<PreviewServer>
}

/** The addresses of previews, the listener behind them, and the ways to their servers. */
export class Previews implements PreviewDirectory {
  readonly #deps: PreviewsDeps
  readonly #listener = new PreviewListener(this)
  /** By label. */
  readonly #found = new Map<string, FoundServer>()
  readonly #https = new Map<string, { readonly inodes: string; readonly https: Promise<boolean> }>()
  #zone: NameZone | undefined
  #listening: Promise<void> | undefined
  #port: number | undefined

  constructor(deps: PreviewsDeps) {
    this.#deps = deps
  }

  get scheme(): 'http:' | 'https:' {
    return this.#deps.host.place.previews.zone?.startsWith('https:') ? 'https:' : 'http:'
  }

  /** Listens, unless it does already; refuses where that fails. */
  listen(): Promise<void> {
    const { port } = this.#deps.host.place.previews
    this.#listening ??= this.#start().catch((error: NodeJS.ErrnoException) => {
      this.#listening = undefined
      return refuse(
        'dependency',
        `the preview listener could not start on ${port ? `port ${port}` : 'a free port'} `
          + `(${error.code ?? error.message}): choose another port with --preview-port`,
      )
    })
    return this.#listening
  }

  close(): Promise<void> {
    return this.#listener.close()
  }

  /** The address of a forwarded port or of a label; undefined while nothing listens for it. */
  urlOf(what: ForwardSlot | LabelRecord): string | undefined {
    return this.#port === undefined ? undefined : previewUrl(this.#labelOf(what), this.#zone!, this.#port)
  }

  /** Ends the open connections of a preview. */
  cut({ name }: { readonly name: string }): void {
    this.#found.delete(name)
    this.#listener.cut(name)
  }

  find(host: string): string | undefined {
    const { slots, labels } = this.#deps.store.state
    return [...slots, ...labels].find(each => hostName(this.#labelOf(each), this.#zone!) === host)?.name
  }

  async open(name: string): Promise<PreviewServer> {
    const { slots, labels } = this.#deps.store.state
    const slot = slots.find(each => each.name === name)
    if (slot?.forward)
      return { port: slot.port, https: slot.forward.https, connect: () => this.#dialForward(name, slot) }
    const label = labels.find(each => each.name === name)
    if (!label?.program) throw new PreviewFault(NOTHING_FORWARDED)
    const known = this.#found.get(name)
    if (known && performance.now() - known.at < FRESH_MS) return known.server
    const server = this.#registered(label)
    this.#found.set(name, { at: performance.now(), server })
    server.catch(() => this.#found.delete(name))
    return server
  }

  /** Connects to the sockets at a place that are in this list, and to no other. */
  async dial(place: PortPlace, inodes: readonly string[]): Promise<Socket | undefined> {
    for (const host of LOOPBACKS) {
      const known = { host, port: place.port, inodes }
      const takers = takersAt(await this.#socketsAt(place), known)
      if (takers.length === 0) continue
      const socket = await dialListener(known, {
        sockets: () => this.#socketsAt(place),
        connect: listening => this.#connect(place, listening, inodes),
      }).catch(() => undefined)
      if (socket) return socket
    }
    return undefined
  }

  async #dialForward(name: string, place: PortPlace): Promise<Socket> {
    const { store, forwards } = this.#deps
    for (const again of [true, false]) {
      const { forward } = store.state.slots.find(each => each.name === name) ?? {}
      if (!forward) throw new PreviewFault(NOTHING_FORWARDED)
      const socket = await this.dial(place, forward.inodes)
      if (socket) return socket
      // Its program may have started again.
      if (again) await forwards().settle(false)
    }
    throw new PreviewFault(notListening(place.port))
  }

  async #registered(label: LabelRecord): Promise<PreviewServer> {
    const { running, found } = await this.#deps.labels().listener(label)
    if (!running) throw new PreviewFault(NOT_RUNNING)
    if (!found) throw new PreviewFault(STARTING)
    const place = found.elsewhere ? await this.#placeOf(found) : found
    const connects = async () => (await this.dial(place, found.inodes)) ?? fault(found)
    const inodes = String(found.inodes)
    const known = this.#https.get(label.name)
    const https = known?.inodes === inodes ? known.https : speaksHttps(found.port, connects)
    this.#https.set(label.name, { inodes, https })
    return { port: found.port, https: await https, connect: connects }
  }

  /** The network in which a program listens that is not in that of the machine. */
  async #placeOf({ port, inodes }: Pick<ProgramListener, 'port' | 'inodes'>): Promise<PortPlace> {
    const networks = await this.#deps.scan.sockets()
    const own = networks.find(({ sockets }) => sockets.some(({ inode }) => inodes.includes(inode)))
    return { port, ...(own?.conversationId !== undefined && { conversationId: own.conversationId }) }
  }

  async #socketsAt({ conversationId }: PortPlace) {
    const networks = await this.#deps.scan.sockets(conversationId !== undefined)
    return networks.find(network => network.conversationId === conversationId)?.sockets ?? []
  }

  async #connect(
    { conversationId }: PortPlace,
    { host, port }: Listening,
    inodes: KnownListener['inodes'],
  ): Promise<Socket> {
    const { call } = this.#deps.host
    const socket =
      conversationId === undefined
        ? connect({ host, port, noDelay: true })
        : connect((await call('networks.relay', { conversationId, host, port, inodes: [...inodes] })).path)
    await once(socket, 'connect')
    return socket
  }

  #labelOf(what: ForwardSlot | LabelRecord): string {
    return hostLabel('label' in what ? what.label : 'port', what.name, this.#zone!)
  }

  async #start(): Promise<void> {
    const { store, host } = this.#deps
    const { place, call } = host
    const { zone, port } = place.previews
    const [{ sandboxId }, { listeners }] = await Promise.all([call('kernel.info'), call('kernel.listeners')])
    this.#zone = { sandboxId, ...(zone !== undefined && { zone }) }
    const { listener } = store.state
    const [first] = listeners
    // Addresses contain the port, so it stays what it was where it can.
    const usual = [...(listener ? [listener] : []), ...(first && first.port < 65_535 ? [first.port + 1] : []), 0]
    const found = await this.#listener.listen(place.previews.host, port === undefined ? usual : [port])
    await call('kernel.listeners.set', { name: 'previews', listeners: [{ host: place.previews.host, port: found }] })
    if (found !== listener) await store.change(() => ({ listener: found }))
    this.#port = found
  }
}

const fault = ({ port }: Listening): never => {
  throw new PreviewFault(notListening(port))
}
