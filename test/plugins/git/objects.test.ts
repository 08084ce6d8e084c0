import { ChildProcess, execFileSync } from 'node:child_process'
import fs, { chmodSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import isomorphic from 'isomorphic-git'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { inGit } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { commitAll, gitWorld, put, repoAt } from './support.js'

const { client, workspace } = await gitWorld(t, { 'README.md': '# work\n' })

/** Counts the programs that this process starts while some work runs. */
const startsOf = async (work: () => Promise<unknown>): Promise<number> => {
  const program = ChildProcess.prototype as unknown as { spawn: (options: object) => unknown }
  const { spawn } = program
  let starts = 0
  program.spawn = function (options) {
    starts += 1
    return Reflect.apply(spawn, this, [options])
  }
  try {
    await work()
    return starts
  } finally {
    program.spawn = spawn
  }
}

t.test('objects are those that another reader of git finds: loose, packed, as deltas, behind tags', async t => {
  const at = join(workspace, 'objects')
  const long = Array.from({ length: 400 }, (_, line) => `line ${line}\n`)
  repoAt(at, { 'a/b/deep.txt': long.join(''), 'a/b.txt': 'beside\n', 'a-b': 'before the folder\n' })
  chmodSync(join(at, 'a-b'), 0o755)
  symlinkSync('a-b', join(at, 'way'))
  const commits = [commitAll(at, 'second')]
  for (let n = 0; n < 5; n++) {
    put(at, { 'a/b/deep.txt': long.with(n * 50, `changed ${n}\n`).join('') })
    commits.push(commitAll(at, `edit ${n}`))
  }
  inGit(at, 'tag', '-a', '-m', 'annotated', 'v1', commits[2]!)
  inGit(at, 'repack', '-q', '-a', '-d', '-f', '--depth=10')
  put(at, { 'a/b.txt': 'loose\n' })
  commits.push(commitAll(at, 'loose'))
  inGit(at, 'worktree', 'add', '-q', '-b', 'linked', join(workspace, 'objects-linked'))
  put(join(workspace, 'objects-linked'), { 'a/b.txt': 'of the worktree\n' })
  commits.push(commitAll(join(workspace, 'objects-linked'), 'in the worktree'))
  for (const repo of ['objects', 'objects-linked'])
    for (const ref of [...commits, 'v1', 'main', 'linked'])
      for (const path of ['a/b/deep.txt', 'a/b.txt', 'a-b']) {
        const found = await client.call('GET /git/{repo}/file', { repo, path, ref })
        const oid = commits.includes(ref) ? ref : await isomorphic.resolveRef({ fs, dir: at, ref })
        const { blob, oid: sha } = await isomorphic.readBlob({ fs, dir: at, oid, filepath: path })
        t.same(found, { path, content: Buffer.from(blob).toString(), sha }, `${repo} ${ref} ${path}`)
      }
  for (const [path, status] of [
    ['a/b', 422],
    ['way', 422],
    ['a/b/deep.txt/more', 404],
    ['a/none', 404],
  ] as const) {
    const asked = () => client.call('GET /git/{repo}/file', { repo: 'objects', path, ref: 'main' })
    t.match(await refusalOf(asked), { status }, path)
  }
})

t.test('a path that reads like another name of git is a path', async t => {
  const at = join(workspace, 'names')
  const paths = ['x-g', 'a@{0}', 'b^{tree}', 'c~1', 'new\nline', ':d', 'é']
  repoAt(at, { first: '1\n' })
  const short = inGit(at, 'rev-parse', '--short', 'HEAD').trim()
  const named = [...paths, `x-g${short}`]
  put(at, Object.fromEntries(named.map(path => [path, `content of ${path}`])))
  commitAll(at, 'names')
  for (const path of named)
    t.match(await client.call('GET /git/{repo}/file', { repo: 'names', path, ref: 'main' }), {
      content: `content of ${path}`,
    })
})

t.test('files and diffs of commits, and the remote, are read without starting a program', async t => {
  const at = join(workspace, 'quiet')
  const first = repoAt(at, { 'a/b/c': '1\n' })
  put(at, { 'a/b/c': '2\n' })
  const sha = commitAll(at, 'two')
  inGit(at, 'remote', 'add', 'origin', 'https://example.org/quiet.git')
  const reads = async () => {
    t.match(await client.call('GET /git/{repo}/file', { repo: 'quiet', path: 'a/b/c', ref: first }), { content: '1\n' })
    const { before, after } = await client.call('GET /git/{repo}/commit-file-diff', {
      repo: 'quiet',
      sha,
      path: 'a/b/c',
    })
    t.same([before, after], ['1\n', '2\n'])
    t.match((await client.call('GET /git/remote-repos')).repos, exactly({ repo: 'quiet', project: 'quiet' }))
  }
  await reads()
  t.equal(await startsOf(reads), 0)
  inGit(at, 'remote', 'set-url', 'origin', 'https://example.org/moved.git')
  t.match(
    (await client.call('GET /git/remote-repos')).repos,
    exactly({ project: 'moved' }),
    'a changed setting is read',
  )
})

t.test('of more than 500 changes 500 are listed and the others counted, and files are paged to the last', async t => {
  const at = join(workspace, 'wide')
  repoAt(at, { f: '1\n' })
  const blob = inGit(at, 'rev-parse', 'HEAD:f').trim()
  const paths = Array.from({ length: 20_000 }, (_, n) => `d${n % 7}/f${String(n).padStart(5, '0')}`)
  execFileSync('git', ['update-index', '--index-info'], {
    cwd: at,
    input: paths.map(path => `100644 ${blob}\t${path}\n`).join(''),
  })
  const { repos } = await client.call('GET /git/changes', { repo: 'wide' })
  t.equal(repos[0]!.staged.length + repos[0]!.unstaged.length, 500)
  t.equal(repos[0]!.truncated, 2 * paths.length - 500, 'each is added to the index and missing on disk')
  const found: string[] = []
  for (let after: string | undefined, more = true; more; after = found.at(-1)) {
    const page = await client.call('GET /git/{repo}/files', { repo: 'wide', limit: 6000, ...(after && { after }) })
    found.push(...page.files)
    more = page.hasMore
  }
  t.same(found, [...paths, 'f'].sort())
})
