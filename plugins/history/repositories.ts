import { refuse, type Context, type Host } from '../../sdk/index.js'

type Asking = Pick<Host, 'call' | 'serves'>

/** Runs a step while no other write of the sandbox changes these repositories. */
export const holdingAll = async <T>(
  host: Asking,
  scopes: readonly string[],
  what: string,
  { signal, caller }: Context,
  step: () => Promise<T>,
): Promise<T> => {
  if (!(await host.serves('git.lock'))) return step()
  const ended = new AbortController()
  const order = { repos: [...scopes], by: `${what} by ${caller.actor}` }
  const lock = await host.call('git.lock', order, { signal: AbortSignal.any([signal, ended.signal]) })
  const events = lock[Symbol.asyncIterator]()
  try {
    await events.next()
    return await step()
  } finally {
    ended.abort()
    await events.return?.()
  }
}

/** Refuses while a turn runs in the shared tree, unless forced, or a repository is in the middle of an operation. */
export const checkRestorable = async (
  host: Asking,
  scopes: readonly string[],
  force: boolean,
  context: Context,
): Promise<void> => {
  if (!force && (await host.serves('agent.conversations'))) {
    const { conversations } = await host.call('agent.conversations')
    const busy = conversations.find(({ live, conversation }) => live && conversation.branch === undefined)
    if (busy) {
      const { id } = busy.conversation
      refuse('conflict', `a turn of ${id} runs in the shared tree: wait for its end, or ask with force`)
    }
  }
  if (!(await host.serves('GET /git/{repo}/operation'))) return
  for (const repo of scopes) {
    const found = await host
      .call('GET /git/{repo}/operation', { repo }, { as: context, signal: context.signal })
      .catch(() => undefined)
    if (found?.operation)
      refuse('conflict', `${repo} is in the middle of a ${found.operation}: continue or abort it first`)
  }
}
