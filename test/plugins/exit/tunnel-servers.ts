import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { folderOf } from '../../support/daemon.js'
import { until } from '../../support/browser/browser.js'
import type { Outside } from './outside.js'

const run = (program: string, args: readonly string[], input?: string): string =>
  execFileSync(program, args, { encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'], ...(input && { input }) })

/** A server of tunnels, and how the check server sees what comes out of it. */
export interface TunnelServer {
  readonly address: string
  /** What its client is given. */
  readonly client: string
}

/** A gateway of WireGuard outside, whose clients come out at their own address in it, which is that of a country. */
export const wireguardServer = async (
  t: Test,
  outside: Outside,
  { name, client, port, label }: { name: string; client: string; port: number; label: string },
): Promise<TunnelServer> => {
  const keys = () => {
    const secret = run('wg', ['genkey']).trim()
    return { secret, open: run('wg', ['pubkey'], secret).trim() }
  }
  const [far, near] = [keys(), keys()]
  outside.begin('wireguard-go', '--foreground', name)
  const conf = join(folderOf(t), `${name}.conf`)
  writeFileSync(
    conf,
    [
      ...['[Interface]', `PrivateKey = ${far.secret}`, `ListenPort = ${port}`],
      ...['[Peer]', `PublicKey = ${near.open}`, `AllowedIPs = ${client}/32`, ''],
    ].join('\n'),
  )
  await until(() => {
    try {
      outside.run('wg', 'setconf', name, conf)
      return true
    } catch {
      return false
    }
  })
  outside.run('ip', 'link', 'set', name, 'up')
  outside.run('ip', 'route', 'add', `${client}/32`, 'dev', name)
  return {
    address: client,
    client: [
      ...[label, '[Interface]', `PrivateKey = ${near.secret}`, `Address = ${client}/24`, 'DNS = 192.0.2.53'],
      ...['[Peer]', `PublicKey = ${far.open}`, `Endpoint = 192.0.2.100:${port}`, 'AllowedIPs = 0.0.0.0/0', ''],
    ].join('\n'),
  }
}

/** Certificates for servers and clients of OpenVPN. */
export const certificates = (t: Test) => {
  const folder = folderOf(t)
  const at = (name: string) => join(folder, name)
  const key = (name: string) => [
    ...['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', at(`${name}.key`)],
  ]
  run('openssl', ['req', '-x509', ...key('ca'), '-out', at('ca.crt'), '-days', '2', '-subj', '/CN=pool ca'])
  for (const [name, use] of [
    ['server', 'serverAuth'],
    ['client', 'clientAuth'],
  ] as const)
    run('openssl', [
      ...['req', '-x509', ...key(name), '-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-out', at(`${name}.crt`)],
      ...['-days', '2', '-subj', `/CN=${name}`, '-addext', `extendedKeyUsage=${use}`],
      ...['-addext', 'keyUsage=digitalSignature', '-addext', 'basicConstraints=critical,CA:FALSE'],
    ])
  return at
}

/** A server of OpenVPN outside, whose clients come out at addresses of a network of its own. */
export const openvpnServer = async (
  outside: Outside,
  at: (name: string) => string,
  { name, network, port }: { name: string; network: string; port: number },
): Promise<TunnelServer> => {
  const server = outside.begin(
    'openvpn',
    ...['--dev', name, '--dev-type', 'tun', '--server', network, '255.255.255.0', '--topology', 'subnet'],
    ...['--proto', 'udp', '--port', String(port), '--ca', at('ca.crt'), '--cert', at('server.crt')],
    ...['--key', at('server.key'), '--dh', 'none', '--keepalive', '5', '60', '--data-ciphers', 'AES-256-GCM'],
    ...['--push', 'redirect-gateway def1', '--push', 'dhcp-option DNS 192.0.2.53'],
  )
  await new Promise<void>(resolve =>
    server.stdout!.on('data', (text: Buffer) => text.includes('Initialization Sequence Completed') && resolve()),
  )
  const block = (tag: string, file: string) => `<${tag}>\n${readFileSync(at(file), 'utf8').trim()}\n</${tag}>`
  return {
    address: network.replace(/0$/, '2'),
    client: [
      ...['client', 'dev tun', 'proto udp', `remote 192.0.2.100 ${port}`, 'nobind', 'remote-cert-tls server'],
      ...['script-security 2', `up "/bin/sh -c 'touch ${at('ran')}'"`, 'redirect-gateway def1', 'cipher AES-128-CBC'],
      ...[block('ca', 'ca.crt'), block('cert', 'client.crt'), block('key', 'client.key'), ''],
    ].join('\n'),
  }
}

/** A row of the list of the pool. */
export const poolRow = (host: string, country: string, score: number, text: string): string =>
  [
    ...[host, '192.0.2.100', score, 10, 1_000_000, 'Somewhere', country, 1, 1000, 1, 1000, '2weeks', 'nobody', 'hello'],
    Buffer.from(text).toString('base64'),
  ].join(',')

/** The list of the pool with these rows. */
export const poolList = (...rows: string[]): string =>
  ['*vpn_servers', '#HostName,IP,Score,…', ...rows, '*', ''].join('\r\n')

/** A server of names at 192.0.2.53 outside, which knows one name, and says in its output who asked. */
export const nameServer = (outside: Outside): void => {
  outside.run('ip', 'addr', 'add', '192.0.2.53/24', 'dev', 'far0')
  const program = `
    const socket = require('dgram').createSocket('udp4')
    socket.on('message', (asked, { address, port }) => {
      let end = 12
      while (asked[end]) end += asked[end] + 1
      const question = asked.subarray(12, end + 5)
      const known = question.toString('latin1').includes('only-there')
      const head = Buffer.from([asked[0], asked[1], 0x81, known ? 0x80 : 0x83, 0, 1, 0, known ? 1 : 0, 0, 0, 0, 0])
      const answer = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 100])
      socket.send(Buffer.concat([head, question, known ? answer : Buffer.alloc(0)]), port, address)
    })
    socket.bind(53, '192.0.2.53')`
  outside.begin(process.execPath, '-e', program)
}
