import { currentBranch } from '../branches/current-branch.js'
import { branchesOnly } from '../branches/agent-branches.js'
import type { Objects } from '../objects/objects.js'
import { limitTo, pathFor, type OpenRepo } from '../repositories/repositories.js'
import type { CommitLog, GitCommit } from './contract.js'

const FORMAT = ['%H', '%h', '%P', '%an', '%ae', '%at', '%D', '%B'].join('%n')
const FIELDS = 7
const LONGEST = 2000

/** The filter of a list of commits. */
export interface LogQuery {
  readonly limit?: number | undefined
  readonly skip?: number | undefined
  readonly ref?: string | undefined
  readonly path?: string | undefined
  readonly query?: string | undefined
  readonly author?: string | undefined
}

/** The names of the refs on a commit, from git's full decoration. */
const refsIn = (decoration: string): { refs: string[]; head: boolean } => {
  const names = decoration.split(', ').filter(Boolean)
  const bare = names.flatMap(name => (name === 'HEAD' ? [] : [name.replace(/^HEAD -> /, '')]))
  return {
    head: names.some(name => name === 'HEAD' || name.startsWith('HEAD -> ')),
    refs: bare.flatMap(name => {
      const tag = /^tag: refs\/tags\/(.+)$/.exec(name)?.[1]
      const branch = /^refs\/(?:heads|remotes)\/(.+)$/.exec(name)?.[1]
      return tag !== undefined ? [`tag: ${tag}`] : branch !== undefined ? [branch] : []
    }),
  }
}

const commitIn = (record: string, only: boolean): GitCommit => {
  const lines = record.split('\n')
  const [sha = '', short = '', parents = '', author = '', email = '', at = '0', decoration = ''] = lines
  const message = lines.slice(FIELDS).join('\n').trim()
  const end = /\n\s*\n/.exec(message)
  const { refs, head } = refsIn(decoration)
  return {
    sha,
    short,
    parents: parents.split(' ').filter(Boolean),
    subject: (end ? message.slice(0, end.index) : message).replaceAll('\n', ' '),
    body: end ? message.slice(end.index).trim() : '',
    author,
    email,
    at: Math.max(0, Number(at) * 1000),
    refs: only ? branchesOnly(refs) : refs,
    head,
  }
}

/** Lists commits of a repository, newest first. */
export const commitLog = async (objects: Objects, opened: OpenRepo, query: LogQuery): Promise<CommitLog> => {
  const { repo, git, only } = opened
  const limit = Math.min(query.limit ?? 300, LONGEST)
  const [head, branch] = await Promise.all([objects.head(git), currentBranch(git)])
  const start = query.ref === undefined ? undefined : await objects.commit(git, query.ref)
  const path = query.path === undefined ? undefined : await pathFor(opened, query.path)
  const hidden = only ? ['--exclude=agent/*'] : []
  const from = start ? [start] : [...hidden, '--branches', '--tags', '--remotes', ...(head ? ['HEAD'] : [])]
  const args = [
    'log',
    '-z',
    `--format=${FORMAT}`,
    '--decorate=full',
    '--no-mailmap',
    '--encoding=UTF-8',
    // A ref whose commit is lost does not end git for the others.
    '--ignore-missing',
    `--max-count=${limit + 1}`,
    `--skip=${query.skip ?? 0}`,
    '--fixed-strings',
    '--regexp-ignore-case',
    ...(query.query === undefined ? [] : [`--grep=${query.query}`]),
    ...(query.author === undefined ? [] : [`--author=${query.author}`]),
    ...(path === undefined ? [] : ['--follow']),
    ...from,
    ...(path === undefined ? limitTo(opened) : ['--', path]),
  ]
  const { text } = await git.read(args)
  const commits = text
    .split('\0')
    .filter(Boolean)
    .map(record => commitIn(record, only !== undefined))
  return {
    repo,
    ...(branch !== undefined && { branch }),
    commits: commits.slice(0, limit),
    hasMore: commits.length > limit,
  }
}
