import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { refuse } from '../../../sdk/index.js'
import { lackingFuse, lackingProgram } from '../machine/lacking.js'
import type { DiskMounter, MountPlan } from './carrier.js'
import { startCarrier } from './carrier-program.js'
import { rcloneEnv, rclonePath, rcloneRemote, rcloneWords, runRclone } from './rclone-remote.js'

const LOOK_MS = 100
/** What rclone before 1.61 makes in place of `.` at the root of an SMB share, as rclone itself writes it. */
const STRAY = '‛．'

/** Mounts with rclone, which speaks SMB, WebDAV and SFTP itself. */
export const rcloneCarrier: DiskMounter = {
  via: 'rclone',
  missing: async () =>
    (await Promise.all([lackingProgram('rclone'), lackingProgram('fusermount3'), lackingFuse()])).flat(),
  start: async plan => {
    const { entry, mountPoint, folder, cache, certificate, readOnly } = plan
    const known = await knownFile(plan)
    const share = { ...plan, ...(known !== undefined && { known }) }
    const trust = certificate === undefined ? [] : ['--ca-cert', await certificateFile(folder, certificate)]
    // rclone mounts what it cannot reach, so the share is listed first.
    const listed = await runRclone(share, ['lsf', '--max-depth', '1', ...trust], rclonePath(entry))
    if (listed.code !== 0) refuse('dependency', `the server refused: ${rcloneWords(listed)}`)
    return startCarrier({
      program: 'rclone',
      args: [
        ...['mount', rcloneRemote(rclonePath(entry)), mountPoint, ...trust],
        ...['--cache-dir', cache, '--vfs-cache-mode', entry.config.cache ?? 'writes', '--vfs-cache-max-size', '2G'],
        // What is written goes to the server when its file is closed.
        ...['--vfs-write-back', '0s', '--dir-cache-time', '5s', '--log-level', 'NOTICE', '--timeout', '60s'],
        ...['--uid', String(process.getuid?.() ?? 0), '--gid', String(process.getgid?.() ?? 0)],
        ...(readOnly ? ['--read-only'] : []),
      ],
      env: await rcloneEnv(share),
      folder,
    })
  },
  flush: async (cache, signal) => {
    while (await isDirty(join(cache, 'vfsMeta'))) {
      if (signal.aborted) return false
      await delay(LOOK_MS)
    }
    return true
  },
  tidy: async share => {
    if (share.entry.config.provider !== 'smb' || share.entry.config.readOnly === 'on') return undefined
    const path = `${rclonePath(share.entry)}/${STRAY}`
    const { code } = await runRclone(share, ['rmdir'], path, { RCLONE_CONFIG_DISK_ENCODING: 'None' })
    return code === 0 ? 'an empty folder that rclone had left on the share was removed' : undefined
  },
}

/** Whether a file waits to be sent to the server. */
const isDirty = async (folder: string): Promise<boolean> => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  for (const entry of entries) {
    if (!entry.isFile()) continue
    const text = await readFile(join(entry.parentPath, entry.name), 'utf8').catch(() => '')
    if (/"Dirty": *true/.test(text)) return true
  }
  return false
}

const knownFile = async ({ entry: { config }, folder, address, hostKey }: MountPlan): Promise<string | undefined> => {
  if (config.provider !== 'sshfs') return undefined
  const path = join(folder, 'known-hosts')
  const port = config.port ?? 22
  await writeFile(path, `${port === 22 ? address : `[${address}]:${port}`} ${hostKey}\n`, { mode: 0o600 })
  return path
}

const certificateFile = async (folder: string, certificate: string): Promise<string> => {
  const path = join(folder, 'certificate.pem')
  await writeFile(path, certificate, { mode: 0o600 })
  return path
}
