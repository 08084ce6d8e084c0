import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { contains } from '../files/paths.js'
import { TEMPORARY, writeAtomic } from '../files/files.js'
import { needProgram, ownEnv, run, type Env } from '../programs/run.js'
import { mountPointsOf, wallKind } from './builders.js'
import { copyAt, laterFolder, preparingFolder } from './later-places.js'
import { kindOf, NOTES } from './sources.js'
import type { Mount, Walled, WallSpec } from './spec.js'
import { copyMounts } from './view.js'
import { ignored } from '../../ignored.js'

const TIMEOUT_MS = 10_000

/**
 * Mounts an empty file system on a folder, then runs a command that builds a wall: what is mounted in the folder later
 * is visible behind that wall.
 */
const HOLD = `
set -e
mount -n -t tmpfs -o mode=0755,nosuid,nodev,size=1m wall "$1"
mount -n --make-shared "$1"
shift
exec "$@"
`

/** Whether this machine's walls can show copies to running programs. */
export const mountsLater = async (): Promise<boolean> => (await wallKind()) === 'bwrap'

/**
 * The same command, in a mount namespace around its wall in which the daemon mounts while the program runs.
 *
 * @param inUserNamespace It is started by the superuser of a user namespace, not by the daemon's own user.
 */
export const mountingLater = async (
  data: string,
  { program, args, ...rest }: Omit<Walled, 'enforced'>,
  inUserNamespace: boolean,
): Promise<Omit<Walled, 'enforced'>> => ({
  ...rest,
  program: await needProgram('unshare'),
  args: [
    ...(inUserNamespace || isSuperuser() ? [] : ['--user', '--map-root-user']),
    ...['--mount', '--propagation', 'private', '--'],
    ...['sh', '-c', HOLD, 'later', await laterFolder(data), program, ...args],
  ],
})

/** Whether the daemon runs as the superuser. */
export const isSuperuser = (): boolean => process.getuid?.() === 0

/** A private copy to show to running programs. */
export interface LaterCopy {
  readonly id: string
  readonly mounts: readonly Mount[]
}

/** How a conversation's private copy is mounted in running programs; undefined: it cannot be. */
export const laterCopy = async (spec: WallSpec, id: string): Promise<LaterCopy | undefined> => {
  const mounts = await copyMounts(spec, copyAt(spec.data, id))
  if (!mounts) return undefined
  const points = mountPointsOf('self')
  const isPlain = mounts.every(([operation, from]) => operation === 'bind' || !points.some(at => below(from, at)))
  return isPlain ? { id, mounts } : undefined
}

/** A mount below a folder would stay writable when the folder is shown read-only. */
const below = (folder: string, point: string): boolean => point !== folder && contains(folder, point)

const OPTIONS: { readonly [operation in Mount[0]]: string } = {
  empty: 'mode=0755,nosuid,nodev,size=1m',
  hide: 'rbind,ro',
  bind: 'rbind,nosuid,nodev',
  show: 'rbind,ro,nosuid,nodev',
  seal: '',
  link: '',
}

/** Names as in fstab(5). */
const escaped = (path: string): string =>
  path.replace(/[\s\\#]/g, char => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`)

/**
 * Mounts a private copy for a program that runs behind a wall with `later`, which is process `pid`.
 *
 * All mounts are made by one process in a mount namespace of its own, and become visible at once: nothing else runs
 * there, so a link that a turn put in the way of a mount leads to nothing that matters.
 */
export const showCopy = async (data: string, pid: number, { id, mounts }: LaterCopy): Promise<void> => {
  const preparing = await preparingFolder(data)
  const made = join(await laterFolder(data), id)
  const [begun, done] = [join(preparing, 'begun'), join(preparing, 'done')]
  const at = copyAt(data, id)
  const table = [
    `wall ${escaped(preparing)} tmpfs mode=0755,nosuid,nodev,size=1m 0 0`,
    ...(await Promise.all(mounts.map(mount => lineOf(mount, join(begun, relative(at, mount[2])))))),
    // The folder around the copy is read-only for the program.
    `${escaped(begun)} ${escaped(done)} none rbind,ro,nosuid,nodev,X-mount.mkdir 0 0`,
    `${escaped(done)} ${escaped(made)} none rbind,X-mount.mkdir 0 0`,
    '',
  ].join('\n')
  const path = join(data, NOTES, `${TEMPORARY}${randomBytes(9).toString('hex')}`)
  await writeAtomic(path, table)
  try {
    const unshare = await needProgram('unshare')
    const mount = [await needProgram('mount'), '-n', '-a', '-T', path]
    await inside(pid, [unshare, '--mount', '--propagation', 'unchanged', '--', ...mount])
    const seen = mountPointsOf(programIn(pid)).filter(point => contains(at, point))
    const expected = new Set([at, ...mounts.map(([, , to]) => to)])
    const missing = [...expected].find(point => !seen.includes(point))
    const other = seen.find(point => !expected.has(point))
    if (missing !== undefined) throw new Error(`expected a mount at ${missing}, found none`)
    if (other !== undefined) throw new Error(`expected only the mounts of the copy, found one at ${other}`)
  } catch (error) {
    await hideCopy(data, pid, id).catch(ignored('the failure before it counts'))
    throw error
  } finally {
    await rm(path, { force: true })
  }
}

/** Removes the mounts of a private copy from a running program. */
export const hideCopy = async (data: string, pid: number, id: string): Promise<void> => {
  const made = join(await laterFolder(data), id)
  await inside(pid, [await needProgram('sh'), '-c', 'umount -n -l "$1" && rmdir "$1"', 'hide', made])
}

const lineOf = async ([operation, from, to]: Mount, at: string): Promise<string> => {
  const isFolder = operation === 'empty' || (operation !== 'hide' && (await kindOf(from)) === 'folder')
  const options = `${OPTIONS[operation]}${isFolder ? ',X-mount.mkdir' : ''}`
  if (operation === 'empty') return `wall ${escaped(at)} tmpfs ${options} 0 0`
  if (operation === 'seal' || operation === 'link') throw new Error(`expected a mount at ${to}, found ${operation}`)
  return `${escaped(operation === 'hide' ? '/dev/null' : from)} ${escaped(at)} none ${options} 0 0`
}

/** Runs a command in the mount namespace around a wall. */
const inside = async (pid: number, command: readonly string[]): Promise<void> => {
  const user = isSuperuser() ? [] : ['--user', '--preserve-credentials']
  const env: Env = await ownEnv()
  const args = ['-t', String(pid), '--mount', ...user, '--', ...command]
  const { code, stderr } = await run(await needProgram('nsenter'), args, { cwd: '/', env, timeoutMs: TIMEOUT_MS })
  if (code !== 0) throw new Error(`mounting for a running program failed with ${code}: ${stderr.slice(0, 500)}`)
}

/** The first process inside a wall. */
const programIn = (pid: number): number => {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
  if (child === undefined) throw new Error(`expected a program behind the wall of process ${pid}, found none`)
  return Number(child)
}
