import { chmod, chown, mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import type { NfsTarget, SmbTarget, WebdavTarget } from '../contract.js'
import { bracketed, sourceOf, webdavAddress } from '../entry.js'
import { lackingClient, lackingFuse, lackingPrivilege, lackingProgram } from '../machine/lacking.js'
import type { DiskMounter, MountPlan, StartedCarrier } from './carrier.js'
import { startCarrier } from './carrier-program.js'

/** Runs a program that mounts and then ends, or puts the service of the mount into the background. */
const mountWith = async (
  program: string,
  args: readonly string[],
  { folder, signal }: Pick<MountPlan, 'folder' | 'signal'>,
): Promise<StartedCarrier> => {
  const { ended, output, end } = await startCarrier({ program, args, folder, env: { LC_ALL: 'C' } })
  const aborted = new Promise<undefined>(resolve => signal.addEventListener('abort', () => resolve(undefined)))
  const code = await Promise.race([ended, aborted])
  if (code === undefined) await end()
  signal.throwIfAborted()
  if (code !== 0) refuse('dependency', `the server refused: ${lastWords(await output()) || `exit code ${code}`}`)
  return { output, end }
}

const lastWords = (said: string): string => {
  const lines = said.split('\n').filter(line => line.trim() !== '' && !line.startsWith('Refer to '))
  return lines
    .slice(-2)
    .join(' ')
    .replaceAll(/(?:(?<!\S)\/\S*\/)?mount\.\w+: ?/g, '')
}

const owner = (): string[] => [`uid=${process.getuid?.() ?? 0}`, `gid=${process.getgid?.() ?? 0}`]

/** Mounts with the SMB client of the kernel. */
export const cifsCarrier: DiskMounter = {
  via: 'cifs',
  missing: async () =>
    (await Promise.all([lackingProgram('mount.cifs'), lackingPrivilege(), lackingClient('cifs')])).flat(),
  start: async plan => {
    const { entry, secrets, mountPoint, folder, address, readOnly } = plan
    const { port, username, domain, version } = entry.config as SmbTarget
    const credentials = join(folder, 'credentials')
    const lines = [`username=${username ?? ''}`, `password=${secrets.password ?? ''}`]
    if (domain !== undefined) lines.push(`domain=${domain}`)
    await writeFile(credentials, lines.map(line => `${line}\n`).join(''), { mode: 0o600 })
    const options = [
      username === undefined ? 'guest' : `credentials=${credentials}`,
      `ip=${address}`,
      ...(port === undefined ? [] : [`port=${port}`]),
      ...(version === undefined ? [] : [`vers=${version}`]),
      ...['nosuid', 'nodev', ...owner(), readOnly ? 'ro' : 'rw'],
    ]
    return mountWith('mount.cifs', [sourceOf(entry.config), mountPoint, '-o', options.join(',')], plan)
  },
}

/** Mounts with the NFS client of the kernel. */
export const nfsCarrier: DiskMounter = {
  via: 'nfs',
  missing: async () =>
    (await Promise.all([lackingProgram('mount.nfs'), lackingPrivilege(), lackingClient('nfs')])).flat(),
  start: async plan => {
    const { export: path, version } = plan.entry.config as NfsTarget
    const options = [
      ...(version === undefined ? [] : [`vers=${version}`]),
      // Without `soft` a program that reads from a dead server could never be ended.
      ...['soft', 'timeo=100', 'retry=0', 'nosuid', 'nodev', plan.readOnly ? 'ro' : 'rw'],
    ]
    return mountWith(
      'mount.nfs',
      [`${bracketed(plan.address)}:${path}`, plan.mountPoint, '-o', options.join(',')],
      plan,
    )
  },
}

/** The group of the user that davfs2 becomes, and that reaches its cache. */
const DAVFS_GROUP = /^davfs2:[^:]*:(\d+):/m

/** Mounts with davfs2. */
export const davfsCarrier: DiskMounter = {
  via: 'davfs2',
  missing: async () => (await Promise.all([lackingProgram('mount.davfs'), lackingPrivilege(), lackingFuse()])).flat(),
  unsuited: ({ config: { cache } }) =>
    cache === 'off' ? 'davfs2 always caches, and the cache of this share is off' : undefined,
  start: async plan => {
    const { entry, secrets, mountPoint, folder, certificate, readOnly } = plan
    const { username } = entry.config as WebdavTarget
    const url = webdavAddress(entry.config as WebdavTarget)
    const credentials = join(folder, 'secrets')
    const words = [url, username ?? '', secrets.password ?? ''].map(text => `"${text.replaceAll(/["\\]/g, '\\$&')}"`)
    await writeFile(credentials, username === undefined ? '' : `${words.join(' ')}\n`, { mode: 0o600 })
    const cacheFolder = await davfsCache(mountPoint)
    const config = [
      `secrets "${credentials}"`,
      `cache_dir "${cacheFolder}"`,
      ...['ask_auth 0', 'use_locks 0', 'cache_size 2048', 'delay_upload 0', 'dir_refresh 5', 'file_refresh 1'],
      // In KiB: kernels since 6.13 read folders in larger pieces than its usual 16 KiB, and then get an error.
      ...['connect_timeout 10', 'read_timeout 30', 'buf_size 256'],
    ]
    if (certificate !== undefined) {
      // It is read after davfs2 became its own user, which does not reach the private folder.
      const path = join(cacheFolder, 'certificate.pem')
      await writeFile(path, certificate, { mode: 0o644 })
      config.push(`trust_server_cert "${path}"`)
    }
    const file = join(folder, 'davfs2.conf')
    await writeFile(file, config.map(line => `${line}\n`).join(''), { mode: 0o600 })
    const options = [`conf=${file}`, 'nosuid', 'nodev', ...owner(), ...(readOnly ? ['ro'] : [])]
    return mountWith('mount.davfs', [url, mountPoint, '-o', options.join(',')], plan)
  },
}

/** Where davfs2 caches what is mounted at a folder: beside the folder, because its own user must reach it. */
export const davfsCacheOf = (mountPoint: string): string => join(dirname(mountPoint), '.davfs2', basename(mountPoint))

const davfsCache = async (mountPoint: string): Promise<string> => {
  const folder = davfsCacheOf(mountPoint)
  const group = DAVFS_GROUP.exec(await readFile('/etc/group', 'utf8'))?.[1]
  await mkdir(dirname(folder), { recursive: true, mode: 0o755 })
  await mkdir(folder, { recursive: true })
  await chown(folder, process.getuid?.() ?? 0, Number(group ?? 0))
  await chmod(folder, 0o770)
  return folder
}
