import { needProgram, ownEnv, run, type Env, type RunResult } from '../../../sdk/node/programs/run.js'
import { shareSegments, webdavAddress, type DiskEntry } from '../entry.js'
import type { ReachedShare } from './carrier.js'
import { keyText } from './sshfs.js'

/** The remote that the variables describe. */
const REMOTE = 'disk'
const TRY_MS = 20_000
const QUICK = ['--retries', '1', '--low-level-retries', '1', '--contimeout', '10s', '--timeout', '15s']

/** A share as rclone reaches it; `known` is the file with the pinned key of an ssh server. */
export interface RcloneShare extends ReachedShare {
  readonly known?: string
}

/** The path of a share below its server, as rclone names it. */
export const rclonePath = ({ config }: DiskEntry): string => {
  if (config.provider === 'smb') return [config.share, ...shareSegments(config.path)].join('/')
  return config.provider === 'sshfs' ? config.path : ''
}

/** A path of the server of a share, as rclone takes it. */
export const rcloneRemote = (path: string): string => `${REMOTE}:${path}`

/** The variables that describe a share to rclone, with its credential. */
export const rcloneEnv = async ({ entry: { config }, secrets, address, known }: RcloneShare): Promise<Env> => {
  const pass = secrets.password === undefined ? undefined : await obscured(secrets.password)
  const fields: { [name: string]: string | undefined } = { pass }
  switch (config.provider) {
    case 'smb':
      fields.type = 'smb'
      fields.host = address
      fields.port = String(config.port ?? 445)
      fields.user = config.username ?? 'guest'
      fields.domain = config.domain
      break
    case 'sshfs':
      fields.type = 'sftp'
      fields.host = address
      fields.port = String(config.port ?? 22)
      fields.user = config.user
      fields.key_pem = secrets.privateKey && keyText(secrets.privateKey).trimEnd().replaceAll('\n', '\\n')
      fields.known_hosts_file = known
      break
    case 'webdav':
      fields.type = 'webdav'
      fields.url = webdavAddress(config)
      fields.vendor = 'other'
      fields.user = config.username
      break
    case 'nfs':
      throw new Error('rclone does not speak NFS')
  }
  const named = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [[`RCLONE_CONFIG_${REMOTE.toUpperCase()}_${name.toUpperCase()}`, value]],
  )
  return { ...Object.fromEntries(named), RCLONE_CONFIG: '/dev/null' }
}

/** A password as rclone takes it. */
const obscured = async (password: string): Promise<string> => {
  const options = { cwd: '/', env: await ownEnv(), input: password, timeoutMs: TRY_MS }
  const { code, stdout, stderr } = await run(await needProgram('rclone'), ['obscure', '-'], options)
  if (code !== 0) throw new Error(`rclone could not read a password: ${stderr}`)
  return stdout.toString().trim()
}

/** Runs one command of rclone on a path of a server. */
export const runRclone = async (
  share: RcloneShare,
  command: readonly string[],
  path: string,
  env: Env = {},
): Promise<RunResult> =>
  run(await needProgram('rclone'), [...command, rcloneRemote(path), ...QUICK], {
    cwd: '/',
    env: await ownEnv({ ...(await rcloneEnv(share)), ...env }),
    signal: share.signal,
    timeoutMs: TRY_MS,
  })

/** The last thing that rclone said, without its time and level. */
export const rcloneWords = ({ stderr, timedOut }: Pick<RunResult, 'stderr' | 'timedOut'>): string =>
  timedOut
    ? `it did not answer within ${TRY_MS / 1000} s`
    : (stderr.trim().split('\n').at(-1) ?? '')
        .replace(/^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d /, '')
        .replace(/^(ERROR|NOTICE|Failed to \w+)[^:]*:[ :]*/, '')
        .replace(/^last error was: /, '')
