import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { inGit } from '../../support/daemon.js'
import { filesOf, type Conversation } from './model.js'

/** The folders of a lane. */
export interface Place {
  readonly folder: string
  readonly workspace: string
  readonly data: string
}

const names = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : [])
const textOf = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8') : '')

/** The checkout of a conversation. */
export const copyOf = ({ data }: Place, id: string): string => join(data, 'agent/checkouts', id)

/** The contents of the two files that a conversation writes, below a folder. */
export const filesIn = (folder: string, id: string): { a: string; b: string } => {
  const { a, b } = filesOf(id)
  return { a: textOf(join(folder, a)), b: textOf(join(folder, b)) }
}

/** The contents of both files in every commit of the repository, also in unreachable ones. */
const committed = (workspace: string, id: string): Set<string> => {
  const { a, b } = filesOf(id)
  const commits = inGit(workspace, 'cat-file', '--batch-all-objects', '--batch-check=%(objecttype) %(objectname)')
    .split('\n')
    .flatMap(line => (line.startsWith('commit ') ? [line.slice('commit '.length)] : []))
  const answers = execFileSync('git', ['cat-file', '--batch'], {
    cwd: workspace,
    input: commits.map(commit => `${commit}:${a}\n${commit}:${b}\n`).join(''),
    maxBuffer: 1 << 28,
  })
  let at = 0
  const next = (): string => {
    const end = answers.indexOf('\n', at)
    const size = / blob (\d+)$/.exec(answers.toString('utf8', at, end))?.[1]
    at = end + 1
    if (size === undefined) return ''
    const text = answers.toString('utf8', at, at + Number(size))
    at += Number(size) + 1
    return text
  }
  return new Set(commits.map(() => JSON.stringify({ a: next(), b: next() })))
}

/** The files of a conversation in the workspace before its first landing. */
export const NOTHING = JSON.stringify({ a: '', b: '' })

/** The faults of landings in the workspace: both files must be as in one commit, or unchanged. */
export const landingFaults = ({ workspace }: Place, conversation: Conversation): string[] => {
  if (!conversation.isolated) return []
  const now = JSON.stringify(filesIn(workspace, conversation.id))
  const before = conversation.landed || NOTHING
  conversation.landed = now
  if (now === before || conversation.here === 'gone' || committed(workspace, conversation.id).has(now)) return []
  return [`${conversation.id}: the workspace has ${now}, which no commit has; it had ${before}`]
}

/** Files that must not be left behind in or beside a git folder. */
const LEFT =
  /(?:\.lock|\.tmp|\.temp|~|\.new|\.old)$|(?:^|\/)(?:tmp_|\.tmp|\.sandbox-write-|\.probe)|\.lock\.\d+$|daemon\.json$/

const below = (folder: string): string[] => readdirSync(folder, { recursive: true }) as string[]

/** The leftovers of interrupted steps after another daemon started, became idle and stopped. */
export const leftovers = ({ workspace, data }: Place): string[] => [
  ...below(workspace)
    .filter(name => LEFT.test(name))
    .map(name => `workspace ${name}`),
  ...below(data)
    // The machine's own settings have such names too.
    .filter(name => LEFT.test(name) && !/^wall\/settings\/[0-9a-f]{32}\//.test(name))
    .map(name => `data ${name}`),
  ...globSync('wall/settings/.*', { cwd: data }),
  ...['rewinds', 'forks', 'runs', 'bad'].flatMap(name => globSync(`journals/agent/${name}/*`, { cwd: data })),
  ...globSync(['files/agents/landings/*', 'agent/rebasing/*', 'agents/benches/*', 'uploads/*'], { cwd: data }),
]

/**
 * The faults of the repository: branches, git dirs of copies and checkouts must be those of the remaining
 * conversations.
 */
export const repositoryFaults = (place: Place, conversations: readonly Conversation[]): string[] => {
  const { workspace, data } = place
  const left = conversations.filter(({ here, isolated }) => here === 'yes' && isolated).map(({ id }) => id)
  const same = (what: string, found: readonly string[], most: readonly string[], least = most) => [
    ...found.filter(id => !most.includes(id)).map(id => `${what} of ${id} is left`),
    ...least.filter(id => !found.includes(id)).map(id => `${what} of ${id} is missing`),
  ]
  const branches = inGit(workspace, 'for-each-ref', '--format=%(refname)', 'refs/heads/agent', 'refs/sandbox/parked')
    .split('\n')
    .filter(Boolean)
    .map(name => name.replace(/^refs\/(?:heads\/agent|sandbox\/parked)\/([^/]+).*$/, '$1'))
  const notes = names(join(data, 'agent/made')).filter(name => name.endsWith('.json'))
  const held = notes.flatMap(name =>
    (JSON.parse(readFileSync(join(data, 'agent/made', name), 'utf8')) as { repos: { gitdir: string }[] }).repos.map(
      ({ gitdir }) => gitdir,
    ),
  )
  const gitdirs = names(join(data, 'agent/git')).map(name => join(data, 'agent/git', name))
  const fsck = (() => {
    try {
      return inGit(workspace, 'fsck', '--strict', '--no-dangling', '--no-progress')
    } catch (error) {
      return `fsck: ${(error as { stderr?: string }).stderr} ${(error as { stdout?: string }).stdout}`
    }
  })()
  return [
    ...same(
      'the branch',
      [...new Set(branches)].filter(id => !id.startsWith('.')),
      left,
    ),
    ...held.filter(gitdir => !existsSync(gitdir)).map(gitdir => `the git dir ${gitdir} is missing`),
    ...gitdirs
      .filter(gitdir => !held.includes(gitdir.replace(/\.(?:seen|form)$/, '')))
      .map(gitdir => `the git dir ${gitdir} is left`),
    ...same(
      'the checkout',
      names(join(data, 'agent/checkouts')).filter(id => id !== '.spare'),
      left,
      [],
    ),
    ...same(
      'the note',
      names(join(data, 'agent/made'))
        .map(name => name.replace(/\.json$/, ''))
        .filter(id => id !== '.spare'),
      left,
      [],
    ),
    ...(fsck.trim() ? [fsck.trim()] : []),
  ]
}
