import { shownPath } from '../../../sdk/node/files/open-path.js'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { isWithin, refuse, type Context, type Host } from '../../../sdk/index.js'
import { foldersWithGit } from '../../../sdk/node/repositories/folders-with-git.js'

type BusyHost = Pick<Host, 'call' | 'serves' | 'place'>

/** Refuses to take a path away under a turn that works there, or under git. */
export const assertIdle = async (host: BusyHost, path: string, at: string): Promise<void> => {
  if (await host.serves('agent.conversations')) {
    const { conversations } = await host.call('agent.conversations')
    const busy = conversations.find(
      ({ live, conversation: { branch, startIn = '.' } }) =>
        live !== undefined && branch === undefined && startIn !== '.' && isWithin(path, startIn),
    )
    if (busy)
      refuse('conflict', `a turn of ${busy.conversation.id} is at work in ${shownPath(path)}: stop it, or wait for it`)
  }
  if (!(await lstat(at)).isDirectory()) return
  for await (const repo of foldersWithGit(at)) {
    const lock = await lstat(join(at, repo, '.git/index.lock')).catch(() => undefined)
    if (lock)
      refuse('conflict', `git is at work in ${shownPath(repo === '' ? path : `${path}/${repo}`)}: wait for it to end`)
  }
}

/** Ends the terminals that were started in a path. */
export const endTerminalsIn = async (host: BusyHost, path: string, context: Context): Promise<void> => {
  if (!(await host.serves('GET /system/terminals'))) return
  const { sessions } = await host.call('GET /system/terminals', undefined, { as: context })
  for (const { name, cwd } of sessions) {
    if (cwd === undefined || cwd === '' || !isWithin(path, cwd)) continue
    await host.call('DELETE /system/terminals/{name}', { name }, { as: context })
  }
}
