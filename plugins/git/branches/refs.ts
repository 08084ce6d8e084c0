import type { OpenRepo } from '../repositories/repositories.js'
import { isAgentBranch } from './agent-branches.js'
import type { BranchList, GitBranch, GitRemoteBranch, GitTag } from './contract.js'

const MOST = 2000
const MOST_TAGS = 1000
const MOST_MESSAGE = 2000

/** Lists refs newest first, each with the requested fields. */
const listed = async (
  { git }: OpenRepo,
  fields: readonly string[],
  prefix: string,
  most: number,
  more: readonly string[] = [],
): Promise<string[][]> => {
  const format = fields.map(field => `%(${field})%00`).join('')
  const args = ['for-each-ref', `--format=${format}`, `--count=${most}`, '--sort=-creatordate', ...more, prefix]
  const tokens = (await git.read(args)).text.split('\0')
  const rows: string[][] = []
  // Records are separated by line breaks, after their last field.
  for (let at = 0; at + fields.length < tokens.length; at += fields.length)
    rows.push(
      tokens.slice(at, at + fields.length).map((field, index) => (index === 0 ? field.replace(/^\n/, '') : field)),
    )
  return rows
}

const seconds = (text: string | undefined): number => Math.max(0, Number(text) * 1000 || 0)

const branchesIn = async (
  opened: OpenRepo,
  holders: ReadonlyMap<string, string>,
  merged: boolean | undefined,
): Promise<GitBranch[]> => {
  const limit = merged === undefined ? [] : [merged ? '--merged=HEAD' : '--no-merged=HEAD']
  const fields = ['refname', 'HEAD', 'upstream:short', 'upstream:track', 'creatordate:unix', 'objectname']
  const rows = await listed(opened, fields, 'refs/heads', MOST, limit)
  return rows.flatMap(([refname = '', head, upstream = '', track = '', at, sha = '']) => {
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
}

const remoteBranchesIn = async (opened: OpenRepo): Promise<GitRemoteBranch[]> => {
  const rows = await listed(opened, ['refname', 'symref', 'creatordate:unix'], 'refs/remotes', MOST)
  return rows.flatMap(([refname = '', symref, at]) => {
    const name = refname.slice('refs/remotes/'.length)
    const slash = name.indexOf('/')
    if (symref !== '' || slash < 0) return []
    return [{ name, remote: name.slice(0, slash), branch: name.slice(slash + 1), at: seconds(at) }]
  })
}

const tagsIn = async (opened: OpenRepo): Promise<GitTag[]> => {
  const fields = ['refname', 'objecttype', 'objectname', '*objectname', 'creatordate:unix', 'contents']
  const rows = await listed(opened, fields, 'refs/tags', MOST_TAGS)
  return rows.map(([refname = '', type, id = '', target = '', at, contents = '']) => {
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
}

/** The branches, remote branches and tags of a repository; `holders` are the conversations by their branches. */
export const branchList = async (
  opened: OpenRepo,
  holders: ReadonlyMap<string, string>,
  merged: boolean | undefined,
): Promise<BranchList> => {
  const unborn = (await opened.git.read(['rev-parse', '--verify', '--quiet', 'HEAD'], { ok: [0, 1] })).code !== 0
  const [branches, remotes, tags, { text }] = await Promise.all([
    unborn && merged !== undefined ? [] : branchesIn(opened, holders, merged),
    remoteBranchesIn(opened),
    tagsIn(opened),
    opened.git.read(['symbolic-ref', '--quiet', 'refs/remotes/origin/HEAD'], { ok: [0, 1] }),
  ])
  const defaultBranch = /^refs\/remotes\/origin\/(.+)\n$/.exec(text)?.[1]
  return { branches, remotes, tags, ...(defaultBranch !== undefined && { defaultBranch }) }
}
