import { dirname, join, relative } from 'node:path'
import type { Host } from '../../../sdk/index.js'
import { readPlain } from '../../../sdk/node/files/files.js'
import { contains } from '../../../sdk/node/files/paths.js'
import type { OpenRepo } from '../repositories/repositories.js'
import { withoutCredentials } from '../remotes/address.js'
import { isShownPath } from '../repositories/names.js'
import type { WallBase } from '../../../sdk/node/transport/remote-git.js'
import { RepoGit } from '../repositories/repo-git.js'
import { repoPlaceAt } from '../repositories/repo-place.js'
import type { GitSubmodule, GitWorktree } from './contract.js'

const MOST_MODULES = 200
const MODULE = '160000'

/** The checkouts of a repository that git knows: the main one first. */
export const worktreesOf = async ({ git, view, only }: OpenRepo, workspace: string): Promise<GitWorktree[]> => {
  const { text } = await git.read(['worktree', 'list', '--porcelain'])
  const blocks = text.split('\n\n').filter(block => block.startsWith('worktree '))
  const found = blocks.map((block, index): GitWorktree & { readonly shown: boolean } => {
    const lines = block.split('\n')
    const value = (name: string) =>
      lines.find(line => line === name || line.startsWith(`${name} `))?.slice(name.length + 1)
    const place = value('worktree') ?? ''
    // For a git dir elsewhere git reports the git dir, not the checkout.
    const dir = index === 0 && !contains(workspace, place) ? git.place.dir : place
    const inside = contains(workspace, dir)
    const [branch, locked, prunable] = [value('branch'), value('locked'), value('prunable')]
    return {
      ...(inside && { path: relative(workspace, dir) || '.' }),
      main: index === 0,
      ...(branch !== undefined && { branch: branch.replace(/^refs\/heads\//, '') }),
      head: value('HEAD') ?? '',
      ...(locked !== undefined && { locked: inside ? locked : '' }),
      ...(prunable !== undefined && { prunable: inside ? prunable : '' }),
      shown: !only || inside,
    }
  })
  const seen = await Promise.all(
    found.map(async ({ shown, ...worktree }) =>
      shown && (!only || worktree.main || (await view.sees(worktree.path))) ? [worktree] : [],
    ),
  )
  return seen.flat()
}

/** The conversations that have a private copy of a repository, by the branch of each. */
export const copyHolders = async (
  host: Pick<Host, 'call' | 'serves'>,
  repo: string,
): Promise<ReadonlyMap<string, string>> => {
  if (!(await host.serves('agent.conversations'))) return new Map()
  const { conversations } = await host.call('agent.conversations')
  return new Map(
    conversations.flatMap(({ conversation: { id, branch, repos, archivedAt } }): [string, string][] =>
      branch !== undefined && archivedAt === undefined && repos.some(each => each.repo === repo) ? [[branch, id]] : [],
    ),
  )
}

/** The private copies in which a repository is checked out, by conversation. */
export const copiesOf = async (
  host: Pick<Host, 'call' | 'serves'>,
  { repo, git }: OpenRepo,
): Promise<GitWorktree[]> => {
  const holders = await copyHolders(host, repo)
  if (holders.size === 0) return []
  const folders = [...new Set([...holders.keys()].map(branch => `refs/heads/${dirname(branch)}`))]
  const { text } = await git.read(['for-each-ref', '--format=%(refname) %(objectname)', ...folders])
  const tips = new Map(text.split('\n').map(line => [line.split(' ')[0] ?? '', line.split(' ')[1] ?? '']))
  return [...holders].flatMap(([branch, id]) => {
    const head = tips.get(`refs/heads/${branch}`)
    return head === undefined ? [] : [{ conversationId: id, main: false, branch, head }]
  })
}

/** The submodules that a checkout declares. */
export const submodulesOf = async ({ repo, git, sees }: OpenRepo, base: WallBase): Promise<GitSubmodule[]> => {
  const declared = readPlain(join(git.place.dir, '.gitmodules'))
  if (declared === undefined) return []
  const args = ['config', '--no-includes', '-z', '--file', '-', '--get-regexp', '^submodule\\..*\\.(path|url)$']
  const { text } = await git.read(args, { input: declared, ok: [0, 1, 128] })
  const modules = new Map<string, { path?: string; url?: string }>()
  for (const entry of text.split('\0').filter(Boolean)) {
    const [key = '', ...value] = entry.split('\n')
    const [, name = '', what = ''] = /^submodule\.(.*)\.(path|url)$/s.exec(key) ?? []
    modules.set(name, { ...modules.get(name), [what]: value.join('\n') })
  }
  const paths = [...modules.values()]
    .flatMap(({ path, url }) => (path === undefined ? [] : [{ path, url: url ?? '' }]))
    .filter(({ path }) => isShownPath(repo, path) && sees(path))
    .slice(0, MOST_MODULES)
  if (paths.length === 0) return []
  const { text: index } = await git.look(['ls-files', '-s', '-z', '--', ...paths.map(({ path }) => path)])
  const entries = index.split('\0').flatMap(record => {
    const [mode = '', id = '', stage = ''] = record.slice(0, record.indexOf('\t')).split(' ')
    return mode === MODULE ? [{ id, stage, path: record.slice(record.indexOf('\t') + 1) }] : []
  })
  const found = await Promise.all(
    paths.map(async ({ path, url }): Promise<GitSubmodule[]> => {
      const own = entries.filter(entry => entry.path === path)
      const recorded = own.find(({ stage }) => stage === '0' || stage === '2')?.id
      if (recorded === undefined) return []
      const checkedOut = await headOf(base, repo, path)
      const conflicted = own.some(({ stage }) => stage !== '0')
      const present = checkedOut === recorded ? 'current' : 'modified'
      const state = conflicted ? 'conflicted' : checkedOut === undefined ? 'uninitialized' : present
      const shown = { path, url: withoutCredentials(url), recorded, state } as const
      return [{ ...shown, ...(checkedOut !== undefined && { checkedOut }) }]
    }),
  )
  return found.flat()
}

/** The commit that a submodule has checked out. */
const headOf = async (base: WallBase, repo: string, path: string): Promise<string | undefined> => {
  const place = repoPlaceAt(base, repo === 'root' ? path : `${repo}/${path}`)
  if (!place || 'error' in place) return undefined
  const { code, text } = await new RepoGit(place, base).read(['rev-parse', '--verify', '--quiet', 'HEAD'], {
    ok: [0, 1],
  })
  return code === 0 ? text.trim() : undefined
}
