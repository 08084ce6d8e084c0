import { hash } from 'node:crypto'
import type { Client, ConnectConfig, FileEntry, SFTPWrapper, Stats } from 'ssh2'
import { namesOf } from '../../../sdk/node/programs/library.js'
import { keyText } from '../carriers/sshfs.js'
import type { OfferedShare, SshfsTarget } from '../contract.js'
import type { DiskSecrets } from '../entry.js'
import { connectTo, failureWords } from './address.js'
import { ignored } from '../../../sdk/index.js'

/** What an ssh server showed. */
export interface SshAnswer {
  readonly reachable: boolean
  readonly latencyMs?: number
  /** Such as `ssh-ed25519 AAAA…`. */
  readonly hostKey?: string
  readonly auth: 'ok' | 'refused' | 'untested'
  readonly shares: OfferedShare[]
  readonly writable?: boolean
  readonly detail?: string
}

const MOST_SHARES = 500
const READY_MS = 10_000
const FOLDER = 0o040000
const KIND = 0o170000
const ANY_WRITE = 0o222
/** The algorithms that prove an RSA key (RFC 8332). */
const RSA = ['rsa-sha2-512', 'rsa-sha2-256', 'ssh-rsa'] as const

interface Asked {
  readonly target: SshfsTarget
  readonly secrets: DiskSecrets
  readonly address: string
  /** The host key that alone is accepted: no credential is sent to a server with another one. */
  readonly pinned?: string
  /** Look into the folder too. */
  readonly list: boolean
  readonly signal: AbortSignal
}

/** The hexadecimal SHA-256 of a host key. */
export const hostKeyHash = (hostKey: string): string =>
  hash('sha256', Buffer.from(hostKey.split(' ')[1] ?? '', 'base64'))

/** A host key without its comment. */
export const plainHostKey = (hostKey: string): string => hostKey.trim().split(/\s+/).slice(0, 2).join(' ')

/** Asks an ssh server for its key and, with a credential and `list`, for the folders in the path. */
export const askSsh = async (asked: Asked): Promise<SshAnswer> => {
  const { target, secrets, address, pinned, list, signal } = asked
  const { Client: SshClient } = namesOf(await import('ssh2'))
  let latencyMs: number | undefined
  let hostKey: string | undefined
  let refusedKey = false
  const client: Client = new SshClient()
  const close = () => client.destroy()
  signal.addEventListener('abort', close, { once: true })
  try {
    const { socket, latencyMs: took } = await connectTo(address, target.port ?? 22, signal)
    latencyMs = took
    const signsIn = list && (secrets.privateKey !== undefined || secrets.password !== undefined)
    const type = pinned?.split(' ')[0]
    const config: ConnectConfig = {
      sock: socket,
      username: target.user,
      readyTimeout: READY_MS,
      hostVerifier: (key: Buffer) => {
        hostKey = `${typeOf(key)} ${key.toString('base64')}`
        refusedKey = pinned !== undefined && hostKey !== pinned
        return signsIn && !refusedKey
      },
      ...(type !== undefined && { algorithms: { serverHostKey: type === 'ssh-rsa' ? [...RSA] : [type as never] } }),
      ...(secrets.privateKey !== undefined && { privateKey: keyText(secrets.privateKey) }),
      ...(secrets.password !== undefined && { password: secrets.password }),
    }
    const ready = new Promise<void>((resolve, reject) => {
      client.once('ready', resolve).on('error', reject)
      client.once('close', () => reject(new Error('it closed the connection')))
    })
    client.connect(config)
    await ready
    const { shares, writable } = await listed(client, target.path)
    return { reachable: true, latencyMs, hostKey: hostKey!, auth: 'ok', shares, writable }
  } catch (error) {
    const level = (error as { level?: string }).level
    const auth = level === 'client-authentication' ? 'refused' : 'untested'
    const why = sentenceOf(error, level, refusedKey)
    return {
      reachable: hostKey !== undefined,
      ...(latencyMs !== undefined && { latencyMs }),
      ...(hostKey !== undefined && { hostKey }),
      auth: error instanceof NotListed ? 'ok' : auth,
      shares: [],
      // Without a credential the connection ends when the key was shown, as it should.
      ...((list || hostKey === undefined) && why !== undefined && { detail: why }),
    }
  } finally {
    signal.removeEventListener('abort', close)
    client.on('error', ignored('its close follows'))
    client.destroy()
  }
}

/** The path could not be listed, though the sign-in was accepted. */
class NotListed extends Error {}

const sentenceOf = (error: unknown, level: string | undefined, refusedKey: boolean): string | undefined => {
  if (refusedKey) return 'its host key is another one than the pinned one'
  if (level === 'client-authentication') return 'it refused the sign-in'
  if (error instanceof NotListed) return error.message
  const said = error instanceof Error ? error.message : ''
  if (/Host denied/.test(said)) return undefined
  if (/Cannot parse privateKey/.test(said)) return 'the private key is none that ssh reads, or it has a passphrase'
  return failureWords(error)
}

/** The type that a key in the format of RFC 4253, section 6.6, begins with. */
const typeOf = (key: Buffer): string => key.subarray(4, 4 + key.readUInt32BE(0)).toString('latin1')

const listed = async (client: Client, path: string): Promise<{ shares: OfferedShare[]; writable: boolean }> => {
  const sftp = await answered<SFTPWrapper>(back => client.sftp(back))
  const [{ mode }, entries] = await Promise.all([
    answered<Stats>(back => sftp.stat(path, back)),
    answered<FileEntry[]>(back => sftp.readdir(path, back)),
  ])
  const folders = entries.filter(({ attrs }) => (attrs.mode & KIND) === FOLDER).map(({ filename }) => filename)
  return {
    shares: folders
      .sort()
      .slice(0, MOST_SHARES)
      .map(name => ({ name })),
    writable: (mode & ANY_WRITE) !== 0,
  }
}

const answered = <T>(ask: (back: (error: Error | undefined | null, value: T) => void) => void): Promise<T> =>
  new Promise((resolve, reject) =>
    ask((error, value) =>
      error ? reject(new NotListed(`the path cannot be listed: ${error.message}`)) : resolve(value),
    ),
  )
