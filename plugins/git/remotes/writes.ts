import { refuse, type Handlers } from '../../../sdk/index.js'
import { checkedRef } from '../repositories/names.js'
import { pathFor } from '../repositories/repositories.js'
import { checkSeen, orConflict, writing } from '../writes/write.js'
import { askedRemote, NO_REMOTE } from './asked-remote.js'
import type { RemoteCalls } from './contract.js'
import type { Fetches, RemoteDeps } from './fetching.js'
import { publishFile, writeRepoFile } from './publishing.js'
import { pull } from './pulling.js'
import { pushBranch, pushTag } from './pushing.js'
import { setRemote } from './setting.js'

type RemoteWrites = Pick<RemoteCalls, `P${'OST' | 'UT'} ${string}` & keyof RemoteCalls>

const MOST_PUBLISHED = 1024 * 1024

/** Serves the calls that configure remotes, fetch from them and push to them. */
export const remoteWrites = (
  deps: RemoteDeps & { readonly folder: string },
  fetches: Fetches,
): Handlers<RemoteWrites> => {
  const { workspace } = deps.host.place
  return {
    'POST /git/{repo}/remotes': ({ repo, name, url }, context) =>
      writing(deps, { repo, verb: 'set remote' }, context, async write => {
        await setRemote(write, { name, url, workspace })
        await write.note('remoteSet', { name, removed: url === undefined })
        return { ok: true as const }
      }),
    'POST /git/{repo}/fetch': async ({ repo, remote: name, prune = true }, context) => {
      const opened = await deps.repositories.open(repo, context.caller)
      const remote = await askedRemote(opened, { workspace, ...(name !== undefined && { name }) })
      const failure = remote ? (await fetches.fetch(opened, remote, prune, context)).failure : NO_REMOTE
      const head = await deps.objects.head(opened.git)
      return { ok: failure === undefined, ...failure, ...(head !== undefined && { head }) }
    },
    'POST /git/{repo}/pull': (order, context) => pull(deps, fetches, order, context),
    'POST /git/{repo}/push': (order, context) => pushBranch(deps, order, context),
    'POST /git/{repo}/tag/push': async ({ repo, name, remote, sha }, context) => {
      const opened = await deps.repositories.open(repo, context.caller)
      const verdict = await pushTag(deps, opened, { name: checkedRef(name), remote, sha }, context.signal)
      return writing(deps, { repo, verb: 'push tag', signal: deps.host.signal }, context, async write => {
        if (verdict.code === undefined) await write.note('pushed', { tag: name, remote })
        return write.result(verdict)
      })
    },
    'POST /git/{repo}/tag/delete': async ({ repo, name, remote, sha }, context) => {
      const opened = await deps.repositories.open(repo, context.caller)
      const ref = `refs/tags/${checkedRef(name)}`
      if (remote !== undefined) await askedRemote(opened, { workspace, name: remote })
      await writing(deps, { repo, verb: 'delete tag' }, context, async write => {
        const found = await deps.objects.read(opened.git, ref, 0)
        if (typeof found === 'string') return refuse('not-found', `${repo} has no tag ${name}`)
        const commit = await deps.objects.read(opened.git, `${ref}^{commit}`, 0)
        checkSeen(`the tag ${name} of ${repo}`, typeof commit === 'string' ? found.id : commit.id, sha)
        return orConflict(write.run(['tag', '-d', '--', name]))
      })
      if (remote === undefined) return { ok: true as const }
      const verdict = await pushTag(deps, opened, { name, remote, deletes: true }, context.signal)
      const { code, reason } = verdict
      return {
        ok: true as const,
        remote: {
          ok: code === undefined,
          ...(code !== undefined && { code }),
          ...(reason !== undefined && { reason }),
        },
      }
    },
    'PUT /git/{repo}/file': async ({ repo, path, ...file }, context) => {
      const opened = await deps.repositories.open(repo, context.caller)
      await writeRepoFile(deps, repo, { ...file, path: await pathFor(opened, path) }, context)
      return { ok: true as const }
    },
    'POST /git/{repo}/publish-file': (order, context) => {
      const bytes = Buffer.byteLength(order.content)
      if (bytes > MOST_PUBLISHED)
        refuse('too-large', `content: expected at most ${MOST_PUBLISHED} bytes, found ${bytes}`)
      return publishFile(deps, order, context)
    },
  }
}
