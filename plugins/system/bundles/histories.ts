import { mkdir, open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Refusal } from '../../../sdk/index.js'
import { FORGIVEN, git, GitFailure } from '../../../sdk/node/programs/git.js'
import type { BundleRepository } from './manifest.js'
import type { FoundRepository } from './workspace-files.js'

const LONG_MS = 3_600_000
const REMOTE = /^remote\.(.+)\.url$/s
const BRANCH = /^branch\.(.+)\.(remote|merge)$/s
/** Remote URLs that name an address and not a program. */
const ADDRESS = /^(?:(?:https?|ssh|git):\/\/[^\s]+|(?!-)[\w.-]+@[\w.-]+:[^\s:][^\s]*)$/
const NAME = /^(?!-)[\w][\w./-]{0,100}$/
/** Only these refs are restored; turns and other programs recreate the refs that they need. */
const KEPT = /^refs\/(?:heads|tags|remotes|notes|sandbox)\/[^\s~^:?*[\\\x00-\x20\x7f]+$/

/**
 * Writes every commit that a repository's branches, tags and other refs reach into one file, and returns its HEAD and
 * refs.
 */
export const packHistory = async (
  { repo, dir }: FoundRepository,
  file: string,
  signal: AbortSignal,
): Promise<BundleRepository & { readonly bytes: number }> => {
  const asked = async (...args: string[]) => {
    const { code, text } = await git(dir, args, { ok: [0, 1, 128], signal })
    return code === 0 ? text.trim() : undefined
  }
  const [branch, commit, first] = [
    await asked('symbolic-ref', '-q', 'HEAD'),
    await asked('rev-parse', '-q', '--verify', 'HEAD^{commit}'),
    await asked('for-each-ref', '--count=1', '--format=%(refname)'),
  ]
  const stands = { repo, head: branch ?? commit ?? 'refs/heads/main', ...(await settingsOf(dir, signal)) }
  if (!commit && !first) return { ...stands, bytes: 0 }
  try {
    await git(dir, ['bundle', 'create', '-q', file, '--all'], { signal, timeoutMs: LONG_MS })
  } catch (error) {
    if (error instanceof GitFailure)
      throw new Refusal(
        'unprocessable',
        `the history of ${repo} cannot be packed: ${error.stderr.trim().split('\n').at(-1)}`,
        { cause: error },
      )
    throw error
  }
  return { ...stands, history: repo, bytes: (await stat(file)).size }
}

/** The remotes of a repository, without credentials in their URLs. */
const settingsOf = async (
  dir: string,
  signal: AbortSignal,
): Promise<Pick<BundleRepository, 'remotes' | 'branches'>> => {
  const { text } = await git(
    dir,
    ['config', '--local', '--no-includes', '-z', '--get-regexp', '^(remote\\..*\\.url|branch\\..*\\.(remote|merge))$'],
    { ok: [0, 1], signal },
  )
  const pairs = text
    .split('\0')
    .filter(Boolean)
    .map(line => [line.slice(0, line.indexOf('\n')), line.slice(line.indexOf('\n') + 1)] as const)
  const remotes = pairs.flatMap(([key, value]) => {
    const name = REMOTE.exec(key)?.[1]
    return name === undefined
      ? []
      : [
          {
            name,
            url: value.replace(/^(\w+:\/\/)[^/@]*@/, (whole, scheme: string) =>
              scheme === 'ssh://' ? whole.replace(/:[^/@]*@/, '@') : scheme,
            ),
          },
        ]
  })
  const branches = new Map<string, { name: string; remote: string; merge: string }>()
  for (const [key, value] of pairs) {
    const [, name, field] = BRANCH.exec(key) ?? []
    if (name === undefined) continue
    const known = branches.get(name) ?? { name, remote: '', merge: '' }
    branches.set(name, { ...known, [field as 'remote' | 'merge']: value })
  }
  return { remotes, branches: [...branches.values()].filter(({ remote, merge }) => remote && merge) }
}

/**
 * Creates a repository from a history, around the files that are there already: its refs, its HEAD and its remotes. No
 * other settings and no hooks are restored.
 */
export const unpackHistory = async (
  dir: string,
  { repo, head, remotes, branches }: BundleRepository,
  file: string | undefined,
  signal: AbortSignal,
): Promise<void> => {
  await mkdir(dir, { recursive: true })
  const run = (args: readonly string[], options: { input?: string; env?: { [name: string]: string } } = {}) =>
    git(dir, args, { signal, timeoutMs: LONG_MS, ...options })
  const branch = head.startsWith('refs/heads/') ? head.slice('refs/heads/'.length) : undefined
  try {
    await run([
      'init',
      '-q',
      '--template=',
      `--object-format=${file ? await formatOf(file) : 'sha1'}`,
      `--initial-branch=${branch ?? 'main'}`,
    ])
    if (file) await fetchAll(run, file, branch === undefined ? head : undefined)
  } catch (error) {
    if (error instanceof GitFailure)
      throw new Refusal(
        'unprocessable',
        `the history of ${repo} is damaged: ${error.stderr.trim().split('\n').at(-1)}`,
        { cause: error },
      )
    throw error
  }
  for (const { name, url } of remotes) {
    if (!NAME.test(name) || !ADDRESS.test(url)) continue
    await run(['config', `remote.${name}.url`, url])
    await run(['config', `remote.${name}.fetch`, `+refs/heads/*:refs/remotes/${name}/*`])
  }
  for (const { name, remote, merge } of branches) {
    if (!NAME.test(name) || !NAME.test(remote) || !merge.startsWith('refs/heads/') || !KEPT.test(merge)) continue
    await run(['config', `branch.${name}.remote`, remote])
    await run(['config', `branch.${name}.merge`, merge])
  }
}

type Run = (
  args: readonly string[],
  options?: { input?: string; env?: { [name: string]: string } },
) => Promise<{ text: string }>

const fetchAll = async (run: Run, file: string, detached: string | undefined): Promise<void> => {
  const { text } = await run(['bundle', 'list-heads', file])
  const refs = text
    .split('\n')
    .map(line => line.slice(line.indexOf(' ') + 1))
    .filter(ref => (KEPT.test(ref) && !ref.includes('..')) || ref === 'refs/stash')
  const specs = [...refs.map(ref => `+${ref}:${ref}`), ...(detached ? ['+HEAD:refs/sandbox/standing'] : [])]
  if (specs.length === 0) throw new GitFailure('bundle', 1, 'it names no branch, tag or commit')
  const forgiven = FORGIVEN.flatMap(fault => ['-c', `fetch.fsck.${fault}=ignore`])
  // Fetches from a local file only: no other transport is allowed.
  await run(
    [
      '-c',
      'fetch.fsckObjects=true',
      ...forgiven,
      'fetch',
      '-q',
      '--no-tags',
      '--no-write-fetch-head',
      '--no-auto-gc',
      '--update-head-ok',
      '--stdin',
      file,
    ],
    { input: `${specs.join('\n')}\n`, env: { GIT_ALLOW_PROTOCOL: 'file' } },
  )
  if (detached) {
    await run(['update-ref', '--no-deref', 'HEAD', detached])
    await run(['update-ref', '-d', 'refs/sandbox/standing'])
  }
  // Files that differ from the commit show as changes. A branch without commits has no tree to read.
  if (
    await run(['rev-parse', '-q', '--verify', 'HEAD^{commit}']).then(
      () => true,
      () => false,
    )
  )
    await run(['read-tree', 'HEAD'])
}

/** The hash algorithm of a history, from its first lines. */
const formatOf = async (file: string): Promise<'sha1' | 'sha256'> => {
  const handle = await open(file, 'r')
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(256), 0, 256, 0)
    return buffer.subarray(0, bytesRead).toString('latin1').includes('@object-format=sha256\n') ? 'sha256' : 'sha1'
  } finally {
    await handle.close()
  }
}

/** Where the history of the nth repository lies in an archive. */
export const historyName = (at: number): string => `${String(at + 1).padStart(3, '0')}.bundle`
/** Where the history of an archive being made is on the disk. */
export const historyFile = (folder: string, at: number): string => join(folder, historyName(at))
