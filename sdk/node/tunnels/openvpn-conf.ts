import { refuse } from '../../index.js'
import { openvpnParts, writtenDirective, wrongLine, type Directive } from './openvpn-text.js'

/** What an OpenVPN configuration says, and the text that `openvpn` is given. */
export interface OpenvpnConf {
  readonly gateway?: string
  readonly device: 'tun' | 'tap'
  /** The networks that it routes by itself; the gateway may push others. */
  readonly networks: readonly string[]
  /** It asks for a user and a password. */
  readonly asksUser: boolean
  readonly text: string
}

const ALLOWED: ReadonlySet<string> = new Set(
  (
    'client dev dev-type proto proto-force remote remote-random remote-random-hostname resolv-retry nobind lport port '
    + 'rport local persist-key persist-tun float keepalive ping ping-restart ping-exit explicit-exit-notify cipher '
    + 'data-ciphers data-ciphers-fallback ncp-ciphers auth auth-user-pass auth-nocache auth-retry tls-client '
    + 'tls-cipher tls-ciphersuites tls-version-min tls-version-max tls-cert-profile tls-groups tls-timeout hand-window '
    + 'reneg-sec reneg-bytes reneg-pkts tran-window remote-cert-tls remote-cert-ku remote-cert-eku verify-x509-name '
    + 'key-direction comp-lzo compress allow-compression tun-mtu tun-mtu-extra link-mtu mssfix fragment mtu-disc '
    + 'sndbuf rcvbuf redirect-gateway redirect-private route route-ipv6 route-gateway route-metric route-delay '
    + 'route-nopull pull pull-filter topology verb mute mute-replay-warnings connect-retry connect-retry-max '
    + 'connect-timeout server-poll-timeout max-routes fast-io replay-window inactive block-outside-dns dhcp-option '
    + 'register-dns push-peer-info static-challenge allow-pull-fqdn txqueuelen ca cert key pkcs12 extra-certs '
    + 'crl-verify tls-auth tls-crypt tls-crypt-v2'
  ).split(' '),
)
const FILES: ReadonlySet<string> = new Set(
  'ca cert key pkcs12 extra-certs crl-verify tls-auth tls-crypt tls-crypt-v2'.split(' '),
)
const ROUTES = /^(?:route|route-ipv6|route-gateway|route-metric|redirect-gateway|redirect-private|route-nopull)$/
/** What this group says itself, on the command line. */
const OWN: ReadonlySet<string> = new Set(['verb', 'mute', 'auth-nocache', 'auth-retry', 'dev', 'dev-type'])

const lengthOf = (mask: string): number =>
  mask.split('.').reduce((sum, part) => sum + (Number(part).toString(2).match(/1/g)?.length ?? 0), 0)

const routeOf = ({ name, args }: Directive): string[] => {
  const [network = '', mask = '255.255.255.255'] = args
  if (name === 'route-ipv6') return [network]
  if (name === 'route') return [`${network}/${lengthOf(mask)}`]
  return name === 'redirect-gateway' ? ['0.0.0.0/0'] : []
}

/** What is passed on of a directive: the content of a file is in its block, so its line says the direction alone. */
const leaving = (directive: Directive): Directive[] => {
  const { name, args } = directive
  if (!FILES.has(name)) return [directive]
  return name === 'tls-auth' && args[1] !== undefined ? [{ ...directive, name: 'key-direction', args: [args[1]] }] : []
}

const check = ({ name, args, line }: Directive, inlined: ReadonlyMap<string, unknown>): void => {
  if (!ALLOWED.has(name))
    wrongLine(line, `${JSON.stringify(name.slice(0, 40))} is none of the directives that the sandbox passes to openvpn`)
  if (FILES.has(name) && !inlined.has(name))
    wrongLine(line, `${name} names a file: put its content into the configuration, between <${name}> and </${name}>`)
  if (FILES.has(name) && args[0] !== '[inline]')
    wrongLine(line, `${name} names a file, and the configuration also has its content: remove the line`)
  if (name === 'auth-user-pass' && args.length > 0)
    wrongLine(line, 'auth-user-pass names a file: remove its name, and give username and password in their fields')
}

/** Whether a directive is passed on when the others are left out: one that is known, and names no file. */
const isPassed = ({ name, args }: Directive, inlined: ReadonlyMap<string, unknown>): boolean =>
  ALLOWED.has(name)
  && (!FILES.has(name) || (inlined.has(name) && args[0] === '[inline]'))
  && (name !== 'auth-user-pass' || args.length === 0)

/** What is left out of a configuration. */
export interface OpenvpnHow {
  /** The networks to which the tunnel is limited: its own routes are left out. */
  readonly only?: readonly string[]
  /** Directives that are not passed on are left out, instead of refused. */
  readonly lenient?: boolean
}

/**
 * Reads a configuration of one tunnel. 422: it cannot be used, with the line.
 *
 * @param how What is left out of its text.
 */
export const openvpnConf = (text: string, { only, lenient = false }: OpenvpnHow = {}): OpenvpnConf => {
  const parts = openvpnParts(text, FILES)
  const { files } = parts
  const kept = (some: readonly Directive[]) => (lenient ? some.filter(one => isPassed(one, files)) : some)
  const [own, connections] = [kept(parts.own), parts.connections.map(kept)]
  const directives = [...own, ...connections.flat()]
  for (const directive of directives) check(directive, files)
  const remote = directives.find(({ name }) => name === 'remote')
  if (!remote) refuse('unprocessable', 'config: expected a line with remote, found none')
  if (!directives.some(({ name }) => name === 'client' || name === 'tls-client'))
    refuse('unprocessable', 'config: expected the line client, found none')
  const [host, port = directives.find(({ name }) => name === 'port' || name === 'rport')?.args[0] ?? '1194'] =
    remote!.args
  const device = directives.find(({ name }) => name === 'dev')?.args[0] ?? 'tun'
  const written = (some: readonly Directive[]): string[] =>
    some
      .flatMap(leaving)
      .filter(({ name }) => !(OWN.has(name) || (only && ROUTES.test(name))))
      .map(writtenDirective)
  return {
    ...(host !== undefined && { gateway: `${host.includes(':') ? `[${host}]` : host}:${port}` }),
    device: device.startsWith('tap') ? 'tap' : 'tun',
    networks: only ?? directives.flatMap(routeOf),
    asksUser: directives.some(({ name }) => name === 'auth-user-pass'),
    text: [
      ...written(own),
      ...connections.flatMap(each => ['<connection>', ...written(each), '</connection>']),
      ...[...files].flatMap(([name, lines]) => [`<${name}>`, ...lines, `</${name}>`]),
      '',
    ].join('\n'),
  }
}
