import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { folderOf } from '../../support/daemon.js'
import { ownProgram } from '../../../sdk/node/programs/own-programs.js'

const NEEDED: { readonly [program: string]: string } = {
  unshare: 'util-linux',
  ip: 'iproute2',
  wg: 'wireguard-tools',
  'wireguard-go': 'wireguard-go',
  openvpn: 'openvpn',
  openssl: 'openssl',
  swanctl: 'strongswan-swanctl',
  'charon-systemd': 'charon-systemd',
  tcpdump: 'tcpdump',
  openconnect: 'openconnect',
  python3: 'python3',
  tor: 'tor',
  curl: 'curl',
}
/** Programs of other tests than those that dial gateways. */
const OTHERS: ReadonlySet<string> = new Set(['tor', 'curl'])
const there = await Promise.all(Object.keys(NEEDED).map(async name => ((await ownProgram(name)) ? [] : [name])))
const lacking = there.flat()

const canMakeNetworks = (): boolean => {
  try {
    execFileSync(
      'unshare',
      ['--net', '--mount', 'sh', '-c', 'test -c /dev/net/tun && ip link add a0 type veth peer name b0'],
      {
        stdio: 'ignore',
      },
    )
    return true
  } catch {
    return false
  }
}

/** The options of a test that dials real gateways: skipped where that cannot be, except in a pipeline. */
export const withGateways = (): { skip?: string } =>
  withPrograms(...Object.keys(NEEDED).filter(name => !OTHERS.has(name)))

/** The options of a test that makes networks and needs programs: skipped where one is missing, except in a pipeline. */
export const withPrograms = (...names: string[]): { skip?: string } => {
  if (process.env.CI) return {}
  const missing = lacking.filter(name => names.includes(name))
  if (missing.length > 0)
    return { skip: `this machine has no ${missing[0]} (Debian: apt-get install ${NEEDED[missing[0]!]})` }
  return canMakeNetworks() ? {} : { skip: 'this machine lets no program make networks with /dev/net/tun in them' }
}

/**
 * What starts a program in networks of its own, whose processes end with it. The programs of tunnels keep their sockets
 * in `/run/wireguard`, which it has for itself.
 */
export const IN_OWN_NETWORK: readonly string[] = [
  ...['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '--', 'sh', '-c'],
  'mkdir -p /run/wireguard && mount -t tmpfs tmpfs /run/wireguard && ip link set lo up && exec "$@"',
  'sh',
]

const run = (program: string, args: readonly string[], input?: string): string =>
  execFileSync(program, args, { encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'], ...(input && { input }) })

/** The address of the far end, which this network reaches over a pair of interfaces. */
export const FAR = '192.0.2.2'
/** The one-time code that the gateway of OpenVPN takes. */
export const CODE = '271828'
const PAGE = 'the page of a private network'
const SERVE = `require('http').createServer((q, a) => a.end('${PAGE}')).listen(80, '0.0.0.0', () => console.log('up'))`

/** A network at the other end of a pair of interfaces, with a server of pages in it. */
export class FarEnd {
  readonly page = PAGE
  readonly #pid: string
  readonly #folder: string
  readonly #children: ChildProcess[] = []

  private constructor(pid: string, folder: string) {
    this.#pid = pid
    this.#folder = folder
  }

  static async start(t: Test): Promise<FarEnd> {
    const holder = spawn('unshare', ['--net', 'sh', '-c', 'echo there && exec sleep 3600'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(holder.stdout!, 'data')
    const far = new FarEnd(String(holder.pid), folderOf(t))
    t.teardown(() => {
      for (const child of [...far.#children, holder]) child.kill('SIGKILL')
    })
    run('ip', ['link', 'add', 'near0', 'type', 'veth', 'peer', 'name', 'far0', 'netns', far.#pid])
    run('ip', ['addr', 'add', '192.0.2.1/24', 'dev', 'near0'])
    run('ip', ['link', 'set', 'near0', 'up'])
    far.run('ip', ['addr', 'add', `${FAR}/24`, 'dev', 'far0'])
    for (const link of ['lo', 'far0']) far.run('ip', ['link', 'set', link, 'up'])
    await once(far.begin(process.execPath, ['-e', SERVE]).stdout!, 'data')
    return far
  }

  /** Runs a program there. */
  run(program: string, args: readonly string[], input?: string): string {
    return run('nsenter', [`--net=/proc/${this.#pid}/ns/net`, program, ...args], input)
  }

  begin(program: string, args: readonly string[]): ChildProcess {
    const child = spawn('nsenter', [`--net=/proc/${this.#pid}/ns/net`, program, ...args], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    this.#children.push(child)
    return child
  }

  /** A gateway of WireGuard at 10.99.0.1, and what its client is given. */
  async wireguard(): Promise<{ client: string; secret: string; received: () => number }> {
    const keys = () => {
      const secret = run('wg', ['genkey']).trim()
      return { secret, open: run('wg', ['pubkey'], secret).trim() }
    }
    const [far, near] = [keys(), keys()]
    this.begin('wireguard-go', ['--foreground', 'farwg'])
    const conf = join(this.#folder, 'farwg.conf')
    writeFileSync(
      conf,
      [
        ...['[Interface]', `PrivateKey = ${far.secret}`, 'ListenPort = 51820'],
        ...['[Peer]', `PublicKey = ${near.open}`, 'AllowedIPs = 10.99.0.2/32', ''],
      ].join('\n'),
    )
    for (let tries = 0; ; tries++) {
      try {
        this.run('wg', ['setconf', 'farwg', conf])
        break
      } catch (error) {
        if (tries > 100) throw error
        await new Promise(resolve => setTimeout(resolve, 50))
      }
    }
    this.run('ip', ['addr', 'add', '10.99.0.1/24', 'dev', 'farwg'])
    this.run('ip', ['addr', 'add', '10.55.0.1/32', 'dev', 'lo'])
    this.run('ip', ['link', 'set', 'farwg', 'up'])
    return {
      secret: near.secret,
      client: [
        ...['[Interface]', `PrivateKey = ${near.secret}`, 'Address = 10.99.0.2/24'],
        ...['[Peer]', `PublicKey = ${far.open}`, `Endpoint = ${FAR}:51820`],
        ...['AllowedIPs = 10.99.0.0/24, 10.55.0.0/16', ''],
      ].join('\n'),
      received: () => Number(this.run('wg', ['show', 'farwg', 'transfer']).split('\t')[1]),
    }
  }

  /** A gateway of OpenVPN at 10.98.0.1, which asks for a user and a password. */
  async openvpn({
    password,
    passphrase,
  }: {
    password: string
    passphrase: string
  }): Promise<{ client: string; key: string; signal: (name: NodeJS.Signals) => void }> {
    const at = (name: string) => join(this.#folder, name)
    const key = (name: string) => [
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-keyout',
      at(name),
    ]
    run('openssl', ['req', '-x509', ...key('ca.key'), '-out', at('ca.crt'), '-days', '2', '-subj', '/CN=far ca'])
    const signed = (name: string, use: string): void => {
      run('openssl', [
        ...[
          'req',
          '-x509',
          ...key(`${name}.key`),
          '-CA',
          at('ca.crt'),
          '-CAkey',
          at('ca.key'),
          '-out',
          at(`${name}.crt`),
        ],
        ...['-days', '2', '-subj', `/CN=${name}`, '-addext', `extendedKeyUsage=${use}`],
        ...['-addext', 'keyUsage=digitalSignature', '-addext', 'basicConstraints=critical,CA:FALSE'],
      ])
    }
    signed('server', 'serverAuth')
    signed('client', 'clientAuth')
    run('openssl', [
      'pkey',
      '-in',
      at('client.key'),
      '-aes256',
      '-passout',
      `pass:${passphrase}`,
      '-out',
      at('locked.key'),
    ])
    const check = at('check.sh')
    const base64 = (text: string) => Buffer.from(text).toString('base64')
    // Ada gives her password, Bob a code with it, and Eve is asked for a code after her password.
    writeFileSync(
      check,
      `#!/bin/sh
case "$(sed -n 1p "$1")=$(sed -n 2p "$1")" in
  'ada=${password}'|'bob=SCRV1:${base64(password)}:${base64(CODE)}'|'eve=CRV1::session-1::${CODE}') exit 0 ;;
  'eve=${password}') echo 'CRV1:R,E:session-1:${base64('eve')}:Your code' > "$auth_failed_reason_file" ;;
esac
exit 1
`,
    )
    chmodSync(check, 0o755)
    const server = this.begin('openvpn', [
      ...['--dev', 'farovpn', '--dev-type', 'tun', '--server', '10.98.0.0', '255.255.255.0', '--topology', 'subnet'],
      ...[
        '--proto',
        'udp',
        '--port',
        '1194',
        '--ca',
        at('ca.crt'),
        '--cert',
        at('server.crt'),
        '--key',
        at('server.key'),
      ],
      ...[
        '--dh',
        'none',
        '--script-security',
        '2',
        '--auth-user-pass-verify',
        check,
        'via-file',
        '--keepalive',
        '5',
        '60',
      ],
      ...[
        '--push',
        'route 10.97.0.0 255.255.0.0',
        '--push',
        'dhcp-option DNS 10.98.0.1',
        '--data-ciphers',
        'AES-256-GCM',
      ],
    ])
    await new Promise<void>(resolve =>
      server.stdout!.on('data', (text: Buffer) => text.includes('Initialization Sequence Completed') && resolve()),
    )
    const block = (tag: string, file: string) => `<${tag}>\n${readFileSync(at(file), 'utf8').trim()}\n</${tag}>`
    return {
      signal: name => void server.kill(name),
      key: readFileSync(at('locked.key'), 'utf8').split('\n')[1]!,
      client: [
        ...[
          'client',
          'dev tun',
          'proto udp',
          `remote ${FAR} 1194`,
          'nobind',
          'auth-user-pass',
          'remote-cert-tls server',
        ],
        ...[
          'data-ciphers AES-256-GCM',
          block('ca', 'ca.crt'),
          block('cert', 'client.crt'),
          block('key', 'locked.key'),
          '',
        ],
      ].join('\n'),
    }
  }
}
