import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import type { Test } from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'

/** An address of this machine that is not the loopback of a conversation. */
export const HERE = Object.values(networkInterfaces())
  .flatMap(all => all ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address

/** A daemon of a user, with a workspace and a home of its own. */
export const daemonOf = async (
  t: Test,
  uid: number,
  files: { readonly [path: string]: string },
  env: NodeJS.ProcessEnv = {},
) => {
  const folder = folderOf(t)
  const [workspace, data] = [`${folder}/w`, `${folder}/d`]
  makeWorkspace(workspace, files)
  chmodSync(folder, 0o755)
  chownSync(folder, uid, uid)
  execFileSync('chown', ['-R', `${uid}:${uid}`, workspace])
  execFileSync('install', ['-d', '-m', '700', '-o', String(uid), data])
  return spawnDaemon(t, {
    workspace,
    data,
    ...(uid !== process.getuid?.() && { user: uid }),
    env: { HOME: folder, XDG_RUNTIME_DIR: folder, XDG_STATE_HOME: folder, ...env },
  })
}
