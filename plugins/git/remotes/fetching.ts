import { join } from 'node:path'
import type { Context } from '../../../sdk/index.js'
import { writeAtomic } from '../../../sdk/node/files/files.js'
import type { OpenRepo } from '../repositories/repositories.js'
import type { RemoteFailure } from '../../../sdk/node/transport/remote-words.js'
import { directRefs, type ScratchTransfer } from '../transport/scratch-repo.js'
import type { Transfers } from '../transport/transfers.js'
import { writing, type WriteDeps, type Writing } from '../writes/write.js'
import type { AskedRemote } from './asked-remote.js'
import { gitSettings } from './settings.js'

/** The outcome of a fetch; no failure: the remote's refs are up to date. */
export interface FetchOutcome {
  readonly failure?: RemoteFailure
}

/** The dependencies of calls that use remotes. */
export type RemoteDeps = WriteDeps & { readonly transfers: Transfers }

/** The refspecs of a fetch: from the settings if they fill the remote's own refs, otherwise every branch. */
const refspecsOf = async ({ git }: OpenRepo, name: string): Promise<string[]> => {
  const settings = await gitSettings(git, '^remote\\..*\\.fetch$')
  const own = settings.flatMap(([key, value]) => (key === `remote.${name}.fetch` ? [value.replace(/^\+?/, '+')] : []))
  const usual = own.filter(value => {
    const [from = '', to = '', ...more] = value.slice(1).split(':')
    return more.length === 0 && from.startsWith('refs/heads/') && to.startsWith(`refs/remotes/${name}/`)
  })
  return usual.length > 0 ? usual : [`+refs/heads/*:refs/remotes/${name}/*`]
}

/** The lines for `git update-ref --stdin` that update refs after a transfer: deletions, and the rest. */
const updatesOf = (
  now: ReadonlyMap<string, string>,
  before: ReadonlyMap<string, string>,
  found: ReadonlyMap<string, string>,
): { gone: string[]; moved: string[] } => {
  const gone = [...before.keys()].filter(name => !found.has(name) && now.has(name)).map(name => `delete ${name}\n`)
  const moved = [...found].flatMap(([name, id]) => {
    const kept = before.get(name) === id || now.get(name) === id
    return kept || (name.startsWith('refs/tags/') && now.has(name)) ? [] : [`update ${name} ${id}\n`]
  })
  return { gone, moved }
}

const takeRefs = async (write: Writing, scratch: ScratchTransfer, found: Map<string, string>): Promise<void> => {
  const { git } = write.opened
  const { gone, moved } = updatesOf(await directRefs(args => git.read(args)), scratch.refs, found)
  for (const lines of [gone, moved])
    if (lines.length > 0) await write.run(['update-ref', '-m', 'fetch', '--stdin'], { input: lines.join('') })
}

/** Fetches; concurrent fetches of one remote share a transfer. */
export class Fetches {
  readonly #deps: RemoteDeps
  readonly #running = new Map<string, Promise<FetchOutcome>>()

  constructor(deps: RemoteDeps) {
    this.#deps = deps
  }

  /** Updates the refs of a remote; a caller that disconnects does not stop it. */
  fetch(
    opened: OpenRepo,
    remote: AskedRemote,
    prune: boolean,
    context: Context,
    late?: AbortSignal,
  ): Promise<FetchOutcome> {
    const key = [opened.git.place.common, remote.name, remote.address.url, prune].join('\0')
    const known = this.#running.get(key)
    if (known) return known
    const running = this.#fetch(opened, remote, prune, context, late)
    this.#running.set(key, running)
    const over = () => void this.#running.delete(key)
    running.then(over, over)
    return running
  }

  async #fetch(
    opened: OpenRepo,
    { name, address }: AskedRemote,
    prune: boolean,
    context: Context,
    late: AbortSignal | undefined,
  ): Promise<FetchOutcome> {
    const {
      transfers,
      host: { signal },
    } = this.#deps
    const { git, repo } = opened
    const refspecs = await refspecsOf(opened, name)
    return transfers.with(git, async scratch => {
      const how = ['fetch', '--progress', '--no-recurse-submodules', ...(prune ? ['--prune'] : []), '--end-of-options']
      const { failure } = await transfers.inScratch(git, scratch, address, url => [...how, url, ...refspecs], late)
      if (failure) return { failure }
      const found = await directRefs(args => git.read(args, { env: scratch.env }))
      const { shallow, fetchHead } = scratch
      if (shallow !== undefined) await writeAtomic(join(git.place.common, 'shallow'), shallow, { mode: 0o644 })
      const { gone, moved } = updatesOf(scratch.refs, scratch.refs, found)
      if (gone.length + moved.length > 0)
        await writing(this.#deps, { repo, verb: 'fetch', signal }, context, write => takeRefs(write, scratch, found))
      await writeAtomic(join(git.place.gitdir, 'FETCH_HEAD'), fetchHead, { mode: 0o644 })
      return {}
    })
  }
}
