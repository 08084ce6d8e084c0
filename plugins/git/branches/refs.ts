import { GitFailure } from '../../../sdk/node/programs/git.js'
import type { OpenRepo } from '../repositories/repositories.js'
import { isAgentBranch } from './agent-branches.js'
import type { BranchList, GitBranch, GitRemoteBranch, GitTag } from './contract.js'

const MOST = 2000
const MOST_TAGS = 1000
const MOST_MESSAGE = 2000

const MOST_BROKEN = 100
/** The most refs that are arguments of one command. */
const MOST_NAMED = 500
const MISSING = /missing object|bad object/

/** What git lists of refs, and the names of those that it cannot read. */
interface Listed {
  readonly rows: string[][]
  readonly broken: readonly string[]
}

/** Git's words for a ref whose file holds no id. */
const ignoredIn = (stderr: string): string[] =>
  [...stderr.matchAll(/^warning: ignoring broken ref (.+)$/gm)].map(([, name = '']) => name)

const rowsIn = (text: string, fields: number): string[][] => {
  const tokens = text.split('\0')
  const rows: string[][] = []
  // Records are separated by line breaks, after their last field.
  for (let at = 0; at + fields < tokens.length; at += fields)
    rows.push(tokens.slice(at, at + fields).map((field, index) => (index === 0 ? field.replace(/^\n/, '') : field)))
  return rows
}

/** The names of the refs below a prefix, newest first as far as git can say; some of them lack their objects. */
const namesBelow = async ({ git }: OpenRepo, prefix: string): Promise<{ sound: string[]; broken: string[] }> => {
  const { text } = await git.read(['for-each-ref', '--format=%(objectname) %(refname)', prefix])
  const refs = text.split('\n').flatMap(line => (line === '' ? [] : [line.split(/ (.*)/s)]))
  const input = refs.map(([id]) => `${id}\n`).join('')
  const { text: found } = await git.read(['cat-file', '--batch-check'], { input })
  const isMissing = found.split('\n').map(line => line.endsWith(' missing'))
  const named = (missing: boolean) => refs.flatMap(([, name = ''], at) => (isMissing[at] === missing ? [name] : []))
  return { sound: named(false), broken: named(true) }
}

/** Lists refs newest first, each with the requested fields; of these the first has to be the name. */
const listed = async (
  opened: OpenRepo,
  fields: readonly string[],
  prefix: string,
  most: number,
  more: readonly string[] = [],
): Promise<Listed> => {
  const format = fields.map(field => `%(${field})%00`).join('')
  const args = ['for-each-ref', `--format=${format}`, `--count=${most}`, '--sort=-creatordate', ...more]
  const { code, text, stderr } = await opened.git.read([...args, prefix], { ok: [0, 128] })
  if (code === 0) return { rows: rowsIn(text, fields.length), broken: ignoredIn(stderr) }
  if (!MISSING.test(stderr)) throw new GitFailure('for-each-ref', code, stderr)
  // One lost object ends git for all refs, so it is asked for the others by name.
  const { sound, broken } = await namesBelow(opened, prefix)
  const rows: string[][] = []
  for (let at = 0; at < sound.length && rows.length < most; at += MOST_NAMED) {
    const answer = await opened.git.read([...args, ...sound.slice(at, at + MOST_NAMED)])
    rows.push(...rowsIn(answer.text, fields.length))
  }
  return { rows: rows.slice(0, most), broken: [...ignoredIn(stderr), ...broken] }
}

const seconds = (text: string | undefined): number => Math.max(0, Number(text) * 1000 || 0)

interface Found<Item> {
  readonly found: Item[]
  readonly broken: readonly string[]
}

const branchesIn = async (
  opened: OpenRepo,
  holders: ReadonlyMap<string, string>,
  merged: boolean | undefined,
): Promise<Found<GitBranch>> => {
  const limit = merged === undefined ? [] : [merged ? '--merged=HEAD' : '--no-merged=HEAD']
  const fields = ['refname', 'HEAD', 'upstream:short', 'upstream:track', 'creatordate:unix', 'objectname']
  const { rows, broken } = await listed(opened, fields, 'refs/heads', MOST, limit)
  const found = rows.flatMap(([refname = '', head, upstream = '', track = '', at, sha = '']) => {
    const name = refname.slice('refs/heads/'.length)
    const heldBy = holders.get(name)
    if (opened.only && (heldBy !== undefined || isAgentBranch(name))) return []
    return [
      {
        name,
        current: head === '*',
        sha,
        ...(upstream !== '' && { upstream }),
        ahead: Number(/ahead (\d+)/.exec(track)?.[1] ?? 0),
        behind: Number(/behind (\d+)/.exec(track)?.[1] ?? 0),
        ...(track === '[gone]' && { gone: true }),
        at: seconds(at),
        ...(heldBy !== undefined && { heldBy }),
      },
    ]
  })
  return { found, broken }
}

const remoteBranchesIn = async (opened: OpenRepo): Promise<Found<GitRemoteBranch>> => {
  const { rows, broken } = await listed(opened, ['refname', 'symref', 'creatordate:unix'], 'refs/remotes', MOST)
  const found = rows.flatMap(([refname = '', symref, at]) => {
    const name = refname.slice('refs/remotes/'.length)
    const slash = name.indexOf('/')
    if (symref !== '' || slash < 0) return []
    return [{ name, remote: name.slice(0, slash), branch: name.slice(slash + 1), at: seconds(at) }]
  })
  return { found, broken }
}

const tagsIn = async (opened: OpenRepo): Promise<Found<GitTag>> => {
  const fields = ['refname', 'objecttype', 'objectname', '*objectname', 'creatordate:unix', 'contents']
  const { rows, broken } = await listed(opened, fields, 'refs/tags', MOST_TAGS)
  const found = rows.map(([refname = '', type, id = '', target = '', at, contents = '']) => {
    const annotated = type === 'tag'
    const message = contents.trim().slice(0, MOST_MESSAGE)
    return {
      name: refname.slice('refs/tags/'.length),
      sha: annotated && target !== '' ? target : id,
      at: seconds(at),
      annotated,
      ...(annotated && message !== '' && { message }),
    }
  })
  return { found, broken }
}

/** The branches, remote branches and tags of a repository; `holders` are the conversations by their branches. */
export const branchList = async (
  opened: OpenRepo,
  holders: ReadonlyMap<string, string>,
  merged: boolean | undefined,
): Promise<BranchList> => {
  const unborn = (await opened.git.read(['rev-parse', '--verify', '--quiet', 'HEAD'], { ok: [0, 1] })).code !== 0
  const [branches, remotes, tags, { text }] = await Promise.all([
    unborn && merged !== undefined ? { found: [], broken: [] } : branchesIn(opened, holders, merged),
    remoteBranchesIn(opened),
    tagsIn(opened),
    opened.git.read(['symbolic-ref', '--quiet', 'refs/remotes/origin/HEAD'], { ok: [0, 1] }),
  ])
  const defaultBranch = /^refs\/remotes\/origin\/(.+)\n$/.exec(text)?.[1]
  const broken = [...new Set([branches, remotes, tags].flatMap(each => each.broken))].slice(0, MOST_BROKEN)
  return {
    branches: branches.found,
    remotes: remotes.found,
    tags: tags.found,
    ...(defaultBranch !== undefined && { defaultBranch }),
    ...(broken.length > 0 && !opened.only && { broken }),
  }
}
