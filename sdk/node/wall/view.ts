import { mkdir, realpath } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { accessTo, type ReachFolder } from '../../reach.js'
import { packageFolder } from '../package.js'
import { contains } from '../paths.js'
import { gitdir } from './gitdir.js'
import { hidden, kindOf, real, shownAsIs } from './sources.js'
import type { Mount, WallGitdir, WallSpec } from './spec.js'

/** Sockets through which a process of the same user starts programs outside the wall. */
const DOORS = [
  '/run/user', '/run/dbus', '/run/systemd/private', '/run/docker.sock', '/run/podman', '/run/containerd', '/run/crio',
  '/run/screen', '/run/libvirt', '/run/snapd.socket',
]

/** Where programs live that are run outside the wall too: the superuser could replace them without a capability. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/etc', '/boot', '/opt']

/** The daemon's own program: what is written there runs as the next daemon. A workspace in it, or around it, stays writable. */
const PROGRAM = packageFolder(import.meta.dirname)

/** What a process behind the wall sees, mount by mount: a later one lies over an earlier one. */
export const mountsOf = async (spec: WallSpec): Promise<Mount[]> => {
  const { workspace, data, copy } = spec
  if (contains(workspace, data)) throw new Error('the data folder must lie outside the workspace')
  const mounts: Mount[] = []
  if (process.getuid?.() === 0) for (const path of SYSTEM) mounts.push(...(await shownAsIs(path)))
  for (const path of [process.execPath, PROGRAM]) mounts.push(...(await shownAsIs(await realpath(path))))
  const doors = [...DOORS, `/tmp/tmux-${process.getuid?.() ?? 0}`, ...(spec.hide ?? [])]
  for (const path of doors) if (!contains(data, path)) mounts.push(...(await hidden(path)))
  mounts.push(['empty', '', data])
  for (const path of spec.exposed ?? []) mounts.push(['bind', await real(path), path])
  const access = (path: string) => (spec.only && contains(workspace, path) ? accessTo(spec.only, relative(workspace, path) || '.') : 'work')
  const gitdirs = copy?.gitdirs ?? []
  const workable = gitdirs.filter(({ path }) => access(join(workspace, path)) === 'work')
  if (spec.only) mounts.push(...(await someFolders(spec, spec.only, gitdirs.filter(each => !workable.includes(each)))))
  else mounts.push(['bind', await real(copy ? copy.dir : workspace), workspace])
  for (const [index, each] of workable.entries()) mounts.push(...(await gitdir(spec, copy?.dir ?? '', each, index)))

  if (!spec.only && (!copy || !spec.ownSandbox)) mounts.push(...(await sharedSandbox(spec)))
  for (const { from, to } of spec.shown ?? []) if (access(to)) mounts.push(['show', await real(from), to])
  for (const path of (spec.readOnly ?? []).filter(access)) {
    const source = copy && contains(workspace, path) ? join(copy.dir, relative(workspace, path)) : path
    if (await kindOf(source)) mounts.push(['show', await real(source), path])
  }
  if (spec.only) mounts.push(['seal', '', workspace])
  mounts.push(['seal', '', data])
  return mounts
}

/** Some folders of the workspace in an empty one, those around others first. A repository that is not one of them keeps its history to itself, wherever that lies. */
const someFolders = async ({ workspace, data, copy }: WallSpec, only: readonly ReachFolder[], closed: readonly WallGitdir[]): Promise<Mount[]> => {
  const mounts: Mount[] = []
  for (const { common } of closed) if (!contains(workspace, common) && !contains(data, common)) mounts.push(...(await hidden(common)))
  mounts.push(['empty', '', workspace])
  for (const { path, access } of only.toSorted((one, other) => one.path.length - other.path.length)) {
    const from = join(copy ? copy.dir : workspace, path)
    if (await kindOf(from)) mounts.push([access === 'work' ? 'bind' : 'show', await real(from), join(workspace, path)])
  }
  return mounts
}

/** The workspace's `.sandbox/`, read-only; made where it is missing, or a turn could make it and fill it. */
const sharedSandbox = async ({ workspace, copy, writable }: WallSpec): Promise<Mount[]> => {
  const sandbox = join(workspace, '.sandbox')
  await mkdir(sandbox, { recursive: true }).catch(() => {})
  if (copy) await mkdir(join(copy.dir, '.sandbox'), { recursive: true }).catch(() => {})
  const mountable = !copy || (await kindOf(join(copy.dir, '.sandbox'))) === 'folder'
  if (!mountable || (await kindOf(sandbox)) !== 'folder') return []
  const mounts: Mount[] = [['show', sandbox, sandbox]]
  for (const path of writable ?? []) {
    if (contains(sandbox, path) && (await kindOf(path))) mounts.push(['bind', await real(path), path])
  }
  return mounts
}
