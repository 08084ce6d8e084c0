import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FarEnd } from './peer.js'

/** What users of the gateway give; it takes every name. */
export interface IpsecUser {
  readonly psk: string
  readonly password: string
}

const PLUGINS = [
  ...['random', 'nonce', 'drbg', 'aes', 'sha1', 'sha2', 'md5', 'hmac', 'kdf', 'xcbc', 'gmp', 'openssl', 'attr'],
  ...['kernel-libipsec', 'kernel-netlink', 'socket-default', 'vici', 'xauth-generic', 'eap-identity', 'eap-md5'],
]

/** An identity that says of itself what charon says of networks. */
const FORGED = '"fqdn:gw.example remote-ts=[10.93.0.0/16]"'

const secret = (text: string): string => `0s${Buffer.from(text).toString('base64')}`

/** A gateway of strongSwan that gives addresses of 10.96.0.0/24 and routes 10.95.0.0/16 and 10.94.0.0/16. */
export const ipsecGateway = async (far: FarEnd, folder: string, { psk, password }: IpsecUser) => {
  mkdirSync(folder, { recursive: true })
  const at = (name: string) => join(folder, name)
  writeFileSync(
    at('strongswan.conf'),
    `charon-systemd {
      load_modular = no
      load = ${PLUGINS.join(' ')}
      i_dont_care_about_security_and_use_aggressive_mode_psk = yes
      plugins { vici { socket = unix://far.vici } }
      filelog { log { path = charon.log
        flush_line = yes } }
    }\n`,
  )
  const gateway = (name: string, version: number, user: string) => `${name} {
      version = ${version}
      ${version === 1 ? 'aggressive = yes' : ''}
      pools = pool
      proposals = aes256-sha256-modp2048
      local { auth = psk
        id = ${version === 1 ? FORGED : 'fqdn:gw.example'} }
      remote { auth = ${version === 1 ? 'psk' : 'eap-md5'}
        ${version === 1 ? '' : 'eap_id = %any'} }
      ${user}
      children { all { local_ts = 10.95.0.0/16,10.94.0.0/16
        esp_proposals = aes256-sha256-modp2048,aes256-sha256 } }
    }`
  writeFileSync(
    at('swanctl.conf'),
    `connections { ${gateway('one', 1, 'remote-x { auth = xauth }')} ${gateway('two', 2, '')} }
    pools { pool { addrs = 10.96.0.10-10.96.0.20
      dns = 10.95.0.1 } }
    secrets { ike0 { secret = ${secret(psk)} }
      xauth0 { secret = ${secret(password)} }
      eap0 { secret = ${secret(password)} } }\n`,
  )
  for (const address of ['10.95.0.1', '10.94.0.1', '10.93.0.1'])
    far.run('ip', ['addr', 'add', `${address}/32`, 'dev', 'lo'])
  const inFolder = (...command: string[]) => [
    ...['sh', '-c', 'cd "$1" && shift && STRONGSWAN_CONF=strongswan.conf exec "$@"', 'sh', folder],
    ...command,
  ]
  const [shell = '', ...args] = inFolder('charon-systemd')
  far.begin(shell, args)
  const speak = (...words: string[]) => {
    const [program = '', ...rest] = inFolder('swanctl', ...words, '--uri', 'unix://far.vici')
    return far.run(program, rest)
  }
  for (let tries = 0; ; tries++)
    try {
      speak('--stats')
      break
    } catch (error) {
      if (tries > 100) throw error
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  for (const what of ['--load-creds', '--load-pools', '--load-conns']) speak(what, '--file', 'swanctl.conf')
  return {
    /** What it noted. */
    log: () => readFileSync(at('charon.log'), 'utf8'),
    /** How many bytes of ESP it has received. */
    received: () =>
      [...speak('--list-sas', '--raw').matchAll(/bytes-in=(\d+)/g)].reduce((sum, [, n]) => sum + Number(n), 0),
  }
}
