import { stat, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { writeAtomic } from '../../../sdk/node/files/files.js'
import { needProgram } from '../../../sdk/node/programs/run.js'
import { IPSEC_CONNECTION, VICI, charonSettings, ipsecChildren, swanctlText } from '../settings/ipsec-conf.js'
import { common } from '../../../sdk/node/tunnels/networks.js'
import type { IpsecSettings } from '../settings/settings.js'
import { deleteInterface, holdsWithin } from '../../../sdk/node/tunnels/interfaces.js'
import { endProcesses } from '../../../sdk/node/tunnels/processes.js'
import { startLasting } from '../../../sdk/node/tunnels/programs.js'
import { CHARON_SETTINGS, associationIn, isCharon, swanctl, type SecurityAssociation } from './charon.js'
import type { ClientHealth, Dialled, Standing, TunnelClient, TunnelDial } from '../../../sdk/node/tunnels/client.js'
import { GatewayRoute, nameInterface, routeInto } from './tunnel-routes.js'

const SWANCTL_FILE = 'swanctl.conf'
const START_MS = 15_000
const ASK_MS = 2500

/** StrongSwan: a charon for each tunnel, with an interface that carries ESP in UDP. */
export class IpsecClient implements TunnelClient<IpsecSettings> {
  async dial(dial: TunnelDial<IpsecSettings>): Promise<Dialled> {
    const { folder, settings, log, signal, interface: name } = dial
    const { conf } = settings
    await rm(join(folder, VICI), { force: true })
    await writeAtomic(join(folder, CHARON_SETTINGS), charonSettings())
    const env = { STRONGSWAN_CONF: CHARON_SETTINGS }
    const pid = await startLasting(await needProgram('charon-systemd'), [], folder, env)
    await dial.started(pid)
    log(`charon is process ${pid}`)
    const standing = { folder, pid }
    const speaks = () =>
      stat(join(folder, VICI)).then(
        () => true,
        () => false,
      )
    const there = await holdsWithin(START_MS, async () => {
      signal.throwIfAborted()
      return (await speaks()) || !(await isCharon(standing))
    })
    if (!there || !(await speaks())) refuse('dependency', 'charon ended before it could be spoken to')
    await this.#load(folder, swanctlText(conf), signal)
    for (const child of ipsecChildren(conf)) await this.#initiate(folder, child, dial)
    const found = await this.#association(folder, signal)
    if (!found) return refuse('dependency', 'the gateway agreed on nothing: it is not connected')
    const [address] = found.addresses
    if (address === undefined) return refuse('dependency', 'the gateway gave this machine no address')
    // The gateway writes some of what charon says, such as its identity.
    const networks = common(conf.networks, found.networks)
    if (networks.length === 0) refuse('dependency', 'the gateway does not route these networks: see routedNetworks')
    await nameInterface(address, name)
    await new GatewayRoute(folder).keep(found.gateway, networks)
    await routeInto(name, networks, address)
    return { dns: [] }
  }

  /** Gives charon the connection and its secrets; the file with them is there while it is read. */
  async #load(folder: string, text: string, signal: AbortSignal): Promise<void> {
    const file = join(folder, SWANCTL_FILE)
    try {
      await writeAtomic(file, text, { mode: 0o600 })
      for (const what of ['--load-creds', '--load-conns']) {
        const { code, output } = await swanctl(folder, [what, '--file', SWANCTL_FILE], { signal })
        if (code !== 0) refuse('dependency', `swanctl ${what} failed: ${output.trim().slice(-300)}`)
      }
    } finally {
      await rm(file, { force: true })
    }
  }

  async #initiate(folder: string, child: string, { log, signal }: TunnelDial<IpsecSettings>): Promise<void> {
    const args = ['--initiate', '--child', child, '--ike', IPSEC_CONNECTION]
    const { code, output } = await swanctl(folder, args, { signal, line: log, timeoutMs: 58_000 })
    if (code !== 0) refuse('dependency', failureIn(output))
  }

  async #association(folder: string, signal?: AbortSignal): Promise<SecurityAssociation | undefined> {
    const options = { timeoutMs: ASK_MS, ...(signal && { signal }) }
    return associationIn((await swanctl(folder, ['--list-sas', '--raw'], options)).output)
  }

  async drop(standing: Standing): Promise<void> {
    const { folder, interface: name } = standing
    if (await isCharon(standing))
      await swanctl(folder, ['--terminate', '--ike', IPSEC_CONNECTION, '--timeout', '2'], { timeoutMs: 4000 })
    await endProcesses(pid => isCharon({ pid, folder }))
    await deleteInterface(name)
    await new GatewayRoute(folder).remove()
    for (const file of [VICI, CHARON_SETTINGS, SWANCTL_FILE, 'charon.log'])
      await rm(join(folder, file), { force: true })
  }

  async health({ folder }: Standing): Promise<ClientHealth> {
    const found = await this.#association(folder)
    return found ? { handshakeAt: Date.now() - found.age * 1000 } : { trying: true }
  }

  async isOver(standing: Standing): Promise<boolean> {
    if (!(await isCharon(standing))) return true
    const { code, output } = await swanctl(standing.folder, ['--list-sas', '--raw'], { timeoutMs: ASK_MS })
    // A charon that does not answer in time may be busy.
    return code === 0 && associationIn(output) === undefined
  }
}

const REFUSED: readonly (readonly [words: RegExp, sentence: string])[] = [
  [
    /AUTHENTICATION_FAILED|AUTH_FAILED|XAuth authentication of .* failed|EAP_FAILURE|EAP method .* failed/i,
    'the gateway refused the sign-in',
  ],
  [/NO_PROPOSAL_CHOSEN/, 'the gateway agrees to none of the ciphers and groups: see dhGroup, pfs and ikeVersion'],
  [/TS_UNACCEPTABLE|INVALID_ID_INFORMATION/, 'the gateway does not route these networks: see routedNetworks'],
  [/INVALID_HASH|decryption failed|invalid HASH|could not decrypt/i, 'the gateway uses another pre-shared key'],
  [/retransmit|peer not responding|giving up|timeout/i, 'the gateway did not answer'],
]

/** Why a dial failed, with what charon said last. */
const failureIn = (output: string): string => {
  const [, sentence] = REFUSED.find(([words]) => words.test(output)) ?? []
  const last = output.trim().split('\n').at(-1)?.slice(0, 200) ?? ''
  return `${sentence ?? 'the tunnel was not established'}: ${last}`
}
