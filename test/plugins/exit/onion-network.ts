import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { folderOf } from '../../support/daemon.js'
import { Outside } from './outside.js'

const AUTHORITIES = ['100.80.0.1', '100.80.0.2', '100.80.0.3']
const EXITS = ['198.51.100.1', '198.51.100.2', '203.0.113.1', '203.0.113.2']
const NOBODY = 'DirAuthority nobody 127.0.0.1:1 0000000000000000000000000000000000000000'
/** Where the addresses of the exits are. */
const RANGES = '3325256704,3325256959,NL\n3405803776,3405804031,DE\n'

/** An onion network in this network namespace, which has nothing else. */
export interface OnionNetwork {
  /** What a client's configuration needs. */
  readonly torrc: string[]
  readonly ranges: string
  /** The server that says who asked it. */
  readonly outside: Outside
  /** Ends the exits at other addresses in the country of one. */
  killOthers(address: string): void
}

const countryOf = (address: string): string => (address.startsWith('198.51.100.') ? 'NL' : 'DE')

/** Starts three authorities, which are the guards, and two exits in each of two countries. */
export const onionNetwork = async (t: Test): Promise<OnionNetwork> => {
  const folder = folderOf(t)
  for (const address of [...AUTHORITIES, ...EXITS]) execFileSync('ip', ['addr', 'add', `${address}/32`, 'dev', 'lo'])
  const ranges = join(folder, 'ranges')
  writeFileSync(ranges, RANGES)
  const none = join(folder, 'none')
  writeFileSync(none, '')
  const children = new Map<string, ChildProcess>()
  t.teardown(() => {
    for (const child of children.values()) child.kill('SIGKILL')
  })
  const at = (address: string) => join(folder, address)
  const common = (address: string) => [
    ...['TestingTorNetwork 1', `DataDirectory ${at(address)}`, `Nickname n${address.replaceAll('.', '')}`],
    ...[`Address ${address}`, `ORPort ${address}:5000`, 'SocksPort 0', 'ContactInfo nobody@example.org'],
    ...[`GeoIPFile ${ranges}`, `GeoIPv6File ${none}`, `Log notice file ${at(address)}/log`],
  ]
  const authorities = AUTHORITIES.map(address => {
    const keys = join(at(address), 'keys')
    mkdirSync(keys, { recursive: true, mode: 0o700 })
    const certificate = join(keys, 'authority_certificate')
    execFileSync(
      'tor-gencert',
      [
        ...['--create-identity-key', '--passphrase-fd', '0', '-m', '12', '-a', `${address}:7000`, '-c', certificate],
        ...['-i', join(keys, 'authority_identity_key'), '-s', join(keys, 'authority_signing_key')],
      ],
      { input: 'a passphrase\n', stdio: ['pipe', 'ignore', 'ignore'] },
    )
    const identity = /^fingerprint (\S+)$/m.exec(readFileSync(certificate, 'utf8'))![1]!
    const torrc = join(at(address), 'torrc')
    writeFileSync(torrc, [...common(address), `DirPort ${address}:7000`, NOBODY, ''].join('\n'))
    const said = execFileSync('tor', ['-f', torrc, '--list-fingerprint'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const fingerprint = said.trim().split('\n').at(-1)!.split(' ').slice(1).join('')
    return { address, torrc, fingerprint, identity }
  })
  const directory = authorities.map(
    ({ address, fingerprint, identity }, nth) =>
      `DirAuthority a${nth} orport=5000 no-v2 v3ident=${identity} ${address}:7000 ${fingerprint}`,
  )
  const begin = (name: string, torrc: string): void => {
    children.set(name, spawn('tor', ['-f', torrc], { stdio: 'ignore' }))
  }
  for (const { address, torrc } of authorities) {
    writeFileSync(
      torrc,
      [
        ...[...common(address), `DirPort ${address}:7000`, ...directory],
        ...['AuthoritativeDirectory 1', 'V3AuthoritativeDirectory 1', 'ExitPolicy reject *:*'],
        ...['TestingV3AuthInitialVotingInterval 5', 'TestingV3AuthInitialVoteDelay 2'],
        ...['TestingV3AuthInitialDistDelay 2', 'V3AuthVotingInterval 10', 'V3AuthVoteDelay 2', 'V3AuthDistDelay 2'],
        // A guard that is an exit as well excludes the exits of its own network.
        `TestingDirAuthVoteGuard ${authorities.map(each => `$${each.fingerprint}`).join(',')}`,
        ...['TestingDirAuthVoteGuardIsStrict 1', ''],
      ].join('\n'),
    )
    begin(address, torrc)
  }
  for (const address of EXITS) {
    mkdirSync(at(address), { mode: 0o700 })
    const torrc = join(at(address), 'torrc')
    writeFileSync(
      torrc,
      [
        ...[...common(address), ...directory, `OutboundBindAddress ${address}`, 'ExitRelay 1', 'AssumeReachable 1'],
        ...['ExitPolicyRejectPrivate 0', 'ExitPolicy accept *:*', 'ServerDNSDetectHijacking 0', ''],
      ].join('\n'),
    )
    begin(address, torrc)
  }
  return {
    torrc: ['TestingTorNetwork 1', ...directory, `GeoIPv6File ${none}`],
    ranges,
    outside: await Outside.start(t, ['198.51.100.0/24', '203.0.113.0/24']),
    killOthers: address => {
      const others = EXITS.filter(each => each !== address && countryOf(each) === countryOf(address))
      for (const each of others) children.get(each)?.kill('SIGKILL')
    },
  }
}
