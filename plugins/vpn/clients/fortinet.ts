import { readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { writeAtomic } from '../../../sdk/node/files/files.js'
import { needProgram } from '../../../sdk/node/programs/run.js'
import { common, isCidr } from '../../../sdk/node/tunnels/networks.js'
import type { FortinetSettings } from '../settings/settings.js'
import { deleteInterface, holdsWithin } from '../../../sdk/node/tunnels/interfaces.js'
import { endProcesses } from '../../../sdk/node/tunnels/processes.js'
import { runStarter } from '../../../sdk/node/tunnels/programs.js'
import type { ClientHealth, Dialled, Standing, TunnelClient, TunnelDial } from '../../../sdk/node/tunnels/client.js'
import { pinnedKey } from './gateway-certificate.js'
import { GatewayRoute, routeInto } from './tunnel-routes.js'

const SCRIPT = 'connect.sh'
const FACTS = 'facts'
const PID = 'openconnect.pid'
const DIAL_MS = 58_000
const SETUP_MS = 10_000

/** The outputs of openconnect are closed while it goes on in the background, and it would end with its next line. */
const IGNORING_CLOSED_OUTPUT = ['-c', 'trap "" PIPE; exec "$@"', 'sh']

/** The argument by which the client of a tunnel is known. */
const pidFile = (folder: string): string => `--pid-file=${join(folder, PID)}`

const quotedWord = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/**
 * What openconnect runs when it is connected: the address, and a file with what the gateway said. It sets no route and
 * no name server, and takes no value of the gateway for anything but an address.
 */
const scriptText = (): string => `#!/bin/sh
[ "$reason" = connect ] || exit 0
case "$INTERNAL_IP4_ADDRESS" in ''|*[!0-9.]*) exit 1 ;; esac
case "$INTERNAL_IP4_MTU" in ''|*[!0-9]*) INTERNAL_IP4_MTU=1300 ;; esac
ip link set dev "$TUNDEV" up mtu "$INTERNAL_IP4_MTU" && ip addr add "$INTERNAL_IP4_ADDRESS/32" dev "$TUNDEV" || exit 1
{
  printf 'gateway %s\\n' "$VPNGATEWAY"
  printf 'address %s\\n' "$INTERNAL_IP4_ADDRESS"
  for each in $INTERNAL_IP4_DNS; do printf 'dns %s\\n' "$each"; done
  at=0
  while [ "$at" -lt "\${CISCO_SPLIT_INC:-0}" ]; do
    eval "network=\\$CISCO_SPLIT_INC_\${at}_ADDR length=\\$CISCO_SPLIT_INC_\${at}_MASKLEN"
    printf 'network %s/%s\\n' "$network" "$length"
    at=$((at + 1))
  done
} > "\${0%/*}/new-facts" && mv "\${0%/*}/new-facts" "\${0%/*}/${FACTS}"
`

/** What the gateway said, as the script wrote it. */
interface GatewayFacts {
  readonly gateway: string
  readonly address: string
  readonly dns: readonly string[]
  /** Empty: everything. */
  readonly networks: readonly string[]
}

/** The facts of a file; words of the gateway that are no addresses are left out. */
export const gatewayFactsIn = (text: string): GatewayFacts => {
  const said = (name: string) =>
    text
      .split('\n')
      .flatMap(line => (line.startsWith(`${name} `) ? [line.slice(name.length + 1)] : []))
      .filter(isCidr)
  return {
    ...{ gateway: said('gateway')[0] ?? '', address: said('address')[0] ?? '' },
    ...{ dns: said('dns'), networks: said('network').filter(network => !network.includes(':')) },
  }
}

/** openconnect with the protocol of Fortinet: password and code go over its standard input. */
export class FortinetClient implements TunnelClient<FortinetSettings> {
  async dial({
    folder,
    settings,
    otp,
    log,
    signal,
    started,
    interface: name,
  }: TunnelDial<FortinetSettings>): Promise<Dialled> {
    const { server, port, username, password, realm, trustedCert, only } = settings
    const pin = trustedCert === undefined ? undefined : await pinnedKey({ server, port }, trustedCert, signal)
    await this.#clear(folder)
    await writeAtomic(join(folder, SCRIPT), scriptText(), { mode: 0o700 })
    const host = server.includes(':') ? `[${server}]` : server
    const args = [
      ...['--protocol=fortinet', '--background', pidFile(folder), '--passwd-on-stdin', `--interface=${name}`],
      // A shell reads the name of the script.
      ...[`--script=${quotedWord(join(folder, SCRIPT))}`, `--user=${username}`, '--no-dtls', '--disable-ipv6'],
      ...(pin === undefined ? [] : [`--servercert=pin-sha256:${pin}`]),
      ...(realm === undefined ? [] : [`--usergroup=${realm}`]),
      `https://${host}:${port}/`,
    ]
    const lines: string[] = []
    const line = (text: string): void => {
      lines.push(text)
      log(text)
    }
    const input = [password, ...(otp === undefined ? [] : [otp]), ''].join('\n')
    const command = [...IGNORING_CLOSED_OUTPUT, await needProgram('openconnect'), ...args]
    const { code } = await runStarter(await needProgram('sh'), command, {
      ...{ cwd: folder, input, signal, line, timeoutMs: DIAL_MS },
    })
    const pid = Number(await readFile(join(folder, PID), 'utf8').catch(() => ''))
    if (code !== 0 || !pid) refuse('dependency', failureIn(lines, otp))
    await started(pid)
    const isSet = () =>
      stat(join(folder, FACTS)).then(
        () => true,
        () => false,
      )
    // It goes on in the background before it has made the interface.
    const answers = await holdsWithin(
      SETUP_MS,
      async () => (await isSet()) || !(await isOurs(pid, { folder, interface: name })),
    )
    if (!answers || !(await isSet())) refuse('dependency', failureIn(lines, otp))
    const facts = gatewayFactsIn(await readFile(join(folder, FACTS), 'utf8').catch(() => ''))
    const offered = facts.networks.length > 0 ? facts.networks : ['0.0.0.0/0']
    const networks = only ? common(only, offered) : offered
    if (networks.length === 0) refuse('dependency', 'the gateway does not route these networks: see routedNetworks')
    await new GatewayRoute(folder).keep(facts.gateway, networks)
    await routeInto(name, networks, facts.address)
    return { dns: facts.dns }
  }

  async drop(standing: Standing): Promise<void> {
    const { folder, interface: name } = standing
    // A sign-in goes on without the daemon that began it, which did not know the process yet.
    await endProcesses(pid => isOurs(pid, standing))
    await deleteInterface(name)
    await new GatewayRoute(folder).remove()
    await this.#clear(folder)
  }

  health(): Promise<ClientHealth> {
    return Promise.resolve({})
  }

  async isOver(standing: Standing): Promise<boolean> {
    return standing.pid === undefined || !(await isOurs(standing.pid, standing))
  }

  async #clear(folder: string): Promise<void> {
    for (const file of [SCRIPT, FACTS, PID]) await rm(join(folder, file), { force: true })
  }
}

/** Whether a process is the client of a tunnel, from its sign-in on. */
const isOurs = async (
  pid: number,
  { folder, interface: name }: Pick<Standing, 'folder' | 'interface'>,
): Promise<boolean> => {
  const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
  return words.includes(pidFile(folder)) && words.includes(`--interface=${name}`)
}

/** Why a dial failed, with what openconnect said last. */
const failureIn = (lines: readonly string[], otp: string | undefined): string => {
  const text = lines.join('\n')
  const last = lines.filter(each => each.trim() !== '' && !/^(?:fgets|Password:|Code:|Enter ')/.test(each)).at(-1)
  const why = last === undefined ? '' : `: ${last.slice(0, 200)}`
  if (/failed verification/.test(text) && !text.includes('/remote/logincheck')) {
    const [, reason = ''] = /Reason: (.*)/.exec(text) ?? []
    return `the certificate of the gateway is not trusted (${reason}): trustedCert pins it, if it is the right one`
  }
  if (/^(?:Code|Token|Challenge)[^:]*:/im.test(text) && otp === undefined)
    return 'the gateway asks for a code: dial again with the code as otp'
  if (text.includes('/remote/logincheck') && !text.includes('fortisslvpn_xml'))
    return `the gateway refused the sign-in${why}`
  return `openconnect did not connect${why}`
}
