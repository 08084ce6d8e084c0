import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../index.js'
import { writeAtomic } from '../files/files.js'
import { needProgram } from '../programs/run.js'
import { deleteInterface, interfaceExists } from './interfaces.js'
import { askProgram, runStarter } from './programs.js'
import type { WireguardConf } from './wireguard-conf.js'
import type { ClientHealth, TunnelDial, Standing, TunnelClient } from './client.js'

const HANDSHAKE_MS = 15_000
const STALE_MS = 180_000

/** A peer as `wg show <interface> dump` has it. */
interface PeerNow {
  readonly publicKey: string
  readonly handshakeAt?: number
  readonly txBytes: number
}

const peersOf = (dump: string): PeerNow[] =>
  dump
    .split('\n')
    .slice(1)
    .filter(Boolean)
    .map(line => {
      const [publicKey = '', , , , handshake = '0', , tx = '0'] = line.split('\t')
      const at = Number(handshake) * 1000
      return { publicKey, txBytes: Number(tx), ...(at > 0 && { handshakeAt: at }) }
    })

/** What a tunnel of WireGuard is dialled with. */
export interface WireguardDial {
  readonly conf: WireguardConf
}

/** WireGuard, through `wg-quick` and `wg`. */
export class WireguardClient implements TunnelClient<WireguardDial> {
  /** The bytes sent when a tunnel was asked last, to see whether it sends. */
  readonly #sent = new Map<string, number>()
  readonly #handshakeMs: number

  constructor(handshakeMs = HANDSHAKE_MS) {
    this.#handshakeMs = handshakeMs
  }

  async dial({
    interface: name,
    folder,
    settings,
    log,
    signal,
  }: TunnelDial<WireguardDial>): Promise<{ dns: string[] }> {
    const file = join(folder, `${name}.conf`)
    await writeAtomic(file, settings.conf.text)
    const { code, output } = await runStarter(await needProgram('wg-quick'), ['up', file], {
      signal,
      line: text => log(text.replace(/^\[#\] /, '')),
    })
    if (code !== 0) refuse('dependency', `wg-quick ended with ${code}: ${lastLineOf(output)}`)
    if (!(await interfaceExists(name))) refuse('dependency', 'wg-quick ended well, and there is no interface')
    await this.#meet(name, settings, log, signal)
    return { dns: [...settings.conf.dns] }
  }

  /** Waits until a gateway answered, where the configuration names one. */
  async #meet(name: string, { conf }: WireguardDial, log: (line: string) => void, signal: AbortSignal): Promise<void> {
    const gateways = conf.peers.filter(({ endpoint }) => endpoint !== undefined)
    if (gateways.length === 0) return
    const wg = await needProgram('wg')
    const keep = (seconds: (peer: (typeof gateways)[number]) => number) =>
      askProgram(
        wg,
        [
          ...['set', name],
          ...gateways.flatMap(peer => ['peer', peer.publicKey, 'persistent-keepalive', String(seconds(peer))]),
        ],
        { signal },
      )
    log(`waiting for ${gateways.map(({ endpoint }) => endpoint).join(', ')} to answer`)
    await keep(() => 5)
    for (const end = Date.now() + this.#handshakeMs; ;) {
      const met = peersOf(await askProgram(wg, ['show', name, 'dump'], { signal }))
      if (gateways.some(({ publicKey }) => met.some(peer => peer.publicKey === publicKey && peer.handshakeAt))) break
      if (Date.now() >= end)
        refuse(
          'dependency',
          `${gateways[0]!.endpoint} did not answer within ${this.#handshakeMs / 1000} s: its address, its key or the `
            + 'key of this side may be wrong, or it is switched off',
        )
      await new Promise(resolve => setTimeout(resolve, 200))
      signal.throwIfAborted()
    }
    await keep(({ keepalive }) => keepalive)
    log('the gateway exchanged keys')
  }

  async drop({ id, interface: name, folder }: Standing): Promise<void> {
    this.#sent.delete(id)
    const file = join(folder, `${name}.conf`)
    if (await interfaceExists(name))
      // What is left of a dial that was cut off may be no tunnel that `wg-quick` knows.
      await runStarter(await needProgram('wg-quick'), ['down', file], { timeoutMs: 10_000 }).catch(() => undefined)
    await deleteInterface(name)
    await rm(file, { force: true })
  }

  async health({ id, interface: name }: Standing): Promise<ClientHealth> {
    const peers = peersOf(await askProgram(await needProgram('wg'), ['show', name, 'dump']))
    const handshakeAt = Math.max(0, ...peers.map(peer => peer.handshakeAt ?? 0))
    const sent = peers.reduce((sum, peer) => sum + peer.txBytes, 0)
    const before = this.#sent.get(id)
    this.#sent.set(id, sent)
    const sending = before !== undefined && sent > before
    const trying = handshakeAt > 0 && Date.now() - handshakeAt > STALE_MS && sending
    return { ...(trying && { trying }), ...(handshakeAt > 0 && { handshakeAt }) }
  }
}

const lastLineOf = (output: string): string => output.trim().split('\n').at(-1)?.slice(0, 300) ?? ''
