import { refuse, type Handlers } from '../../../sdk/index.js'
import { operationOf } from '../changes/operation.js'
import { verdictOf } from '../repositories/repo-git.js'
import { checkedRef } from '../repositories/names.js'
import type { OpenRepo } from '../repositories/repositories.js'
import { checkSeen, orConflict, writing, type WriteDeps, type Writing } from '../writes/write.js'
import type { BranchCalls } from './contract.js'
import { anyExit, overwrittenIn } from './git-words.js'
import { copiesOf } from './worktrees.js'

type WriteCalls = Pick<BranchCalls, `POST ${string}` & keyof BranchCalls>

/** The name of a new branch or tag. */
const newName = (name: string): string => {
  if (name === 'HEAD')
    refuse('invalid', 'name: expected another name than HEAD', { errors: [{ path: 'name', expected: 'not HEAD' }] })
  return checkedRef(name)
}

/** The conversation in whose private copy a branch is checked out. */
const heldBy = async (deps: WriteDeps, opened: OpenRepo, branch: string): Promise<string | undefined> =>
  (await copiesOf(deps.host, opened)).find(copy => copy.branch === branch)?.conversationId

/** The arguments of a checkout for a name, after the options. */
const targetOf = async (deps: WriteDeps, { opened }: Writing, ref: string): Promise<string[]> => {
  const { git, repo } = opened
  const has = async (name: string) => typeof (await deps.objects.read(git, name, 0)) !== 'string'
  checkedRef(ref, 'ref')
  if (await has(`refs/heads/${ref}`)) return [ref]
  if (await has(`refs/tags/${ref}`)) return ['--detach', `refs/tags/${ref}`]
  const short = /^[^/]+\/(.+)$/.exec(ref)?.[1]
  if (short !== undefined && (await has(`refs/remotes/${ref}`))) {
    if (await has(`refs/heads/${short}`)) return [short]
    return ['-b', short, '--track', ref]
  }
  const { text } = await git.read(['for-each-ref', '--format=%(refname)', 'refs/remotes'])
  const remote = text.split('\n').filter(name => /^refs\/remotes\/[^/]+\/(.+)$/.exec(name)?.[1] === ref)
  if (remote.length === 1) return ['-b', ref, '--track', remote[0]!.slice('refs/remotes/'.length)]
  if (remote.length > 1) return refuse('not-found', `${repo} has no branch ${ref}, and more than one remote has`)
  return ['--detach', await deps.objects.commit(git, ref)]
}

/** Serves the calls that create, delete and switch branches and tags. */
export const branchWrites = (deps: WriteDeps): Handlers<WriteCalls> => ({
  'POST /git/{repo}/branch': ({ repo, sha, name }, context) =>
    writing(deps, { repo, verb: 'branch' }, context, async write => {
      const commit = await deps.objects.commit(write.opened.git, sha)
      await orConflict(write.run(['branch', '--no-track', newName(name), commit]))
      return { ok: true as const }
    }),
  'POST /git/{repo}/branches': ({ repo, name, start = 'HEAD', checkout = false }, context) =>
    writing(deps, { repo, verb: 'branch', whole: checkout }, context, async write => {
      const commit = await deps.objects.commit(write.opened.git, start)
      const args = checkout ? ['checkout', '-q', '--no-track', '-b'] : ['branch', '--no-track']
      await orConflict(write.run([...args, newName(name), commit]))
      return { ok: true as const }
    }),
  'POST /git/{repo}/branches/delete': ({ repo, name, force = false, sha }, context) =>
    writing(deps, { repo, verb: 'delete branch' }, context, async write => {
      const { git } = write.opened
      const found = await deps.objects.read(git, `refs/heads/${checkedRef(name)}`, 0)
      if (typeof found === 'string') return refuse('not-found', `${repo} has no branch ${name}`)
      checkSeen(`${name} of ${repo}`, found.id, sha)
      const holder = await heldBy(deps, write.opened, name)
      if (holder !== undefined) refuse('conflict', `${name} is checked out in the private copy of ${holder}`)
      const { code, stderr } = await write.run(['branch', '-q', force ? '-D' : '-d', name], { ok: [0, 1] })
      if (code !== 0) {
        const unmerged = /not fully merged/.test(stderr)
        const { text } = await git.read(['rev-list', '--count', `refs/heads/${name}`, '--not', 'HEAD'])
        refuse(
          'conflict',
          unmerged
            ? `${name} has ${text.trim()} commits that HEAD does not have: delete it with force`
            : verdictOf(stderr),
        )
      }
      await write.note('branchDeleted', { name, sha: found.id })
      return { ok: true as const, sha: found.id }
    }),
  'POST /git/{repo}/tag': ({ repo, sha, name, message }, context) =>
    writing(deps, { repo, verb: 'tag' }, context, async write => {
      const commit = await deps.objects.commit(write.opened.git, sha)
      const how = message === undefined ? [] : ['-a', '--cleanup=whitespace', '-F', '-']
      const input = message === undefined ? {} : { input: message }
      await orConflict(write.run(['tag', ...how, newName(name), commit], input))
      return { ok: true as const }
    }),
  'POST /git/{repo}/checkout': ({ repo, ref, expectHead }, context) =>
    writing(deps, { repo, verb: 'checkout', whole: true, expectHead }, context, async write => {
      const target = await targetOf(deps, write, ref)
      const holder = await heldBy(deps, write.opened, target[0]!)
      if (holder !== undefined)
        return write.result({ code: 'checked-out', reason: `${ref} is checked out in the private copy of ${holder}` })
      const { code, stderr } = await write.run(['checkout', '-q', ...target, '--'], anyExit)
      if (code !== 0 || operationOf(write.opened.git.place.gitdir)) {
        const dirty = overwrittenIn(stderr)
        const elsewhere = /is already checked out at/.test(stderr)
        return write.result({
          code: dirty.length > 0 ? 'dirty' : elsewhere ? 'checked-out' : 'other',
          reason: verdictOf(stderr),
          conflicts: dirty,
        })
      }
      await write.note('checkedOut', { ref })
      return write.result({})
    }),
})
