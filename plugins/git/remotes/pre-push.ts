import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { listEnv } from '../../../sdk/node/programs/run.js'
import { runWalled } from '../../../sdk/node/wall/wall.js'
import { hooksOf } from '../changes/committing.js'
import { verdictOf } from '../repositories/repo-git.js'
import type { OpenRepo, Repositories } from '../repositories/repositories.js'
import type { AskedRemote } from './asked-remote.js'
import type { PushOrder } from './push-order.js'

const HOOK_MS = 120_000
const MOST_BYTES = 256 * 1024

/** Runs the pre-push hook of a repository behind the wall, without a credential; returns its objection. */
export const prePushFinding = async (
  { git }: OpenRepo,
  { wall }: Pick<Repositories, 'wall'>,
  { name, address }: AskedRemote,
  { local, id, remote, expected }: PushOrder,
): Promise<string | undefined> => {
  const hook = join(await hooksOf(git, wall.workspace), 'pre-push')
  const there = await stat(hook).catch(() => undefined)
  const runs =
    there?.isFile()
    && (await access(hook, constants.X_OK)
      .then(() => true)
      .catch(() => false))
  if (!runs) return undefined
  const none = '0'.repeat(id.length)
  const { code, stdout, stderr, timedOut } = await runWalled(
    { ...git.wall, cwd: git.place.dir, env: listEnv({ ...git.env, GIT_LITERAL_PATHSPECS: '0' }) },
    hook,
    [name, address.url],
    { input: `${local} ${id} ${remote} ${expected ?? none}\n`, timeoutMs: HOOK_MS, maxBytes: MOST_BYTES },
  )
  if (timedOut) return `the pre-push hook did not end within ${HOOK_MS / 1000} s`
  const said = stderr.trim() === '' ? stdout.toString() : stderr
  return code === 0 ? undefined : said.trim() === '' ? `the pre-push hook ended with ${code}` : verdictOf(said)
}
