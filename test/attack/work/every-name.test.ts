import { execFileSync } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Client } from '../../../sdk/client.js'
import { runTurn } from '../../support/turns.js'
import { answersOf, walled } from '../support.js'
import { USERS } from '../users.js'
import { daemonOf } from '../network/user-daemon.js'

/** Names that a file system takes and that programs read in their own ways. */
const NAMES: readonly string[] = [
  'back\\slash.txt',
  'dev-disk-by\\x2duuid.mount',
  'new\nline.txt',
  'tab\there.txt',
  'esc\u001b[31m.txt',
  'caf\u00e9.txt',
  'cafe\u0301.txt',
  'blank at the end ',
  ' blank before.txt',
  '-dash.txt',
  '--help',
  'percent%2fslash.txt',
  '%00.txt',
  'smile-\u{1f600}.txt',
  'override-\u202etxt.exe',
  'zero\u200bwidth.txt',
  'quote"and\'tick`.txt',
  '$HOME.txt',
  ':(glob)*.txt',
  '*.star',
  '[a]?.txt',
  '#hash.txt',
  '!not.txt',
  '{brace}.txt',
  '~tilde.txt',
  'end.',
  'CON',
  'x'.repeat(255),
  '\u00e9'.repeat(127),
]
const LAST = 'plain.txt'
const ALL = [...NAMES, LAST]

/** The lines of a script that use a tool on a path. */
const TOOLS: { readonly [tool: string]: (path: string) => string } = {
  read: path => `read ${path.replaceAll('$', '$$$$')}`,
  append: path => `append ${path.replaceAll('$', '$$$$')}\n| more`,
  delete: path => `delete ${path.replaceAll('$', '$$$$')}`,
}

const failed = async (asking: Promise<unknown>): Promise<string | undefined> => {
  try {
    await asking
    return undefined
  } catch (error) {
    return String((error as Error).message).slice(0, 200)
  }
}

/** A use of a name that a list showed, by the names of the list and the use; a failure is a sentence. */
interface Lists {
  list(): Promise<readonly string[]>
  /** In this order; each gets a name as the list shows it. */
  readonly uses: { readonly [use: string]: (path: string) => Promise<unknown> }
}

const expectSame = (found: unknown, wanted: string, what: string): void => {
  if (found !== wanted) throw new Error(`${what}: expected ${JSON.stringify(wanted)}, found ${JSON.stringify(found)}`)
}

const everyPair = async (t: Test, lists: { readonly [list: string]: Lists }, folder: string): Promise<void> => {
  for (const [name, { list, uses }] of Object.entries(lists)) {
    const shown = (await list()).filter(path => path.startsWith(`${folder}/`))
    const missing = ALL.filter(each => !shown.includes(`${folder}/${each}`))
    t.strictSame(missing, [], `${name} shows every name`)
    for (const [use, run] of Object.entries(uses))
      for (const path of shown) t.equal(await failed(run(path)), undefined, `${name}, ${use}: ${JSON.stringify(path)}`)
  }
}

const write = (root: string, folder: string, text: string): void => {
  for (const name of ALL) writeFileSync(join(root, folder, name), text)
}

/** Commits everything as the owner of a repository. */
const committed = (repository: string): string => {
  const { uid, gid } = statSync(repository)
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.org', ...args], {
      ...{ cwd: repository, encoding: 'utf8', uid, gid },
      env: { PATH: process.env.PATH, HOME: repository },
    }).trim()
  git('add', '-A')
  git('commit', '-qm', 'two')
  return git('rev-parse', 'HEAD')
}

const listsOf = (client: Client, workspace: string, folder: string): { readonly [list: string]: Lists } => {
  const repo = 'root'
  const onDisk = (path: string) => readFileSync(join(workspace, path), 'utf8')
  const status = async () => (await client.call('GET /git/{repo}/status', { repo })).files
  let commit = ''
  return {
    'GET /workspace/children': {
      list: async () =>
        (await client.call('GET /workspace/children', { path: folder })).entries.map(({ path }) => path),
      uses: {
        read: async path => {
          const found = await client.call('GET /workspace/file', { path })
          expectSame('content' in found ? found.content : undefined, onDisk(path), 'its text')
        },
        ticket: path => client.call('POST /workspace/media-ticket', { path }),
        download: path => client.call('POST /workspace/download-ticket', { paths: [path] }),
        search: async path => {
          const query = path.slice(folder.length + 1)
          const { groups } = await client.call('GET /workspace/search', { query, mode: 'files', limit: 200 })
          if (!groups.some(found => found.path === path))
            throw new Error(`found ${JSON.stringify(groups).slice(0, 150)}`)
        },
        save: async path => {
          await client.call('PUT /workspace/file', { path, content: 'saved\n' })
          expectSame(onDisk(path), 'saved\n', 'its text')
        },
        'delete and restore': async path => {
          const { trashId } = await client.call('DELETE /workspace/entry', { path })
          await client.call('POST /workspace/restore', { id: trashId! })
          expectSame(onDisk(path), 'saved\n', 'its text')
        },
        rename: async path => {
          await client.call('POST /workspace/move', { from: path, to: `${folder}/moved.tmp` })
          execFileSync('mv', ['--', join(workspace, folder, 'moved.tmp'), join(workspace, path)])
        },
      },
    },
    'GET /git/{repo}/status': {
      list: status,
      uses: {
        compare: path => client.call('GET /git/{repo}/file-diff', { repo, path, side: 'unstaged' }),
        choose: async path => {
          await client.call('POST /git/{repo}/stage', { repo, paths: [path] })
          await client.call('GET /git/{repo}/file-diff', { repo, path, side: 'staged' })
        },
        unchoose: path => client.call('POST /git/{repo}/unstage', { repo, paths: [path] }),
        stash: async path => {
          await client.call('POST /git/{repo}/stash', { repo, paths: [path] })
          expectSame(onDisk(path), 'one\n', 'its text')
          writeFileSync(join(workspace, path), 'two\n')
        },
        discard: async path => {
          await client.call('POST /git/{repo}/discard', { repo, paths: [path] })
          expectSame(onDisk(path), 'one\n', 'its text')
          writeFileSync(join(workspace, path), 'two\n')
        },
      },
    },
    'GET /git/{repo}/commit-diff': {
      list: async () => {
        commit = committed(workspace)
        const { files } = await client.call('GET /git/{repo}/commit-diff', { repo, sha: commit })
        return files.map(({ path }) => path)
      },
      uses: {
        compare: path => client.call('GET /git/{repo}/commit-file-diff', { repo, sha: commit, path }),
        read: async path => {
          const found = await client.call('GET /git/{repo}/file', { repo, path, ref: 'HEAD' })
          expectSame(found.content, 'two\n', 'its text')
        },
        blame: path => client.call('GET /git/{repo}/blame', { repo, path }),
        history: async path => {
          const { commits } = await client.call('GET /git/{repo}/log', { repo, path })
          expectSame(String(commits.length), '2', 'its commits')
        },
      },
    },
  }
}

for (const [user, uid] of USERS)
  t.test(`${user}: whatever name a list shows, every call that takes one takes it`, walled(), async t => {
    const files = Object.fromEntries(ALL.map(name => [`odd/${name}`, 'one\n']))
    const daemon = await daemonOf(t, uid, { 'README.md': '# work\n', ...files })
    const { client, workspace } = daemon
    await everyPair(t, { children: listsOf(client, workspace, 'odd')['GET /workspace/children']! }, 'odd')
    write(workspace, 'odd', 'two\n')
    const { 'GET /workspace/children': _, ...rest } = listsOf(client, workspace, 'odd')
    await everyPair(t, rest, 'odd')

    await t.test('a private copy: compared, chosen and landed one by one', async t => {
      const script = 'run for f in odd/* ; do printf "three\\\\n" > "$$f"; done'
      await runTurn(client, 'copy', script, { isolated: true })
      const diff = await client.call('GET /agents/{id}/diff', { id: 'copy' })
      const shown = diff.repos.flatMap(({ changes }) => changes.map(({ path }) => path))
      t.strictSame(
        ALL.filter(name => !shown.includes(`odd/${name}`)),
        [],
      )
      for (const path of shown) {
        const compared = client.call('GET /agents/{id}/{repo}/file-diff', { id: 'copy', repo: 'root', path })
        t.equal(await failed(compared), undefined, `compare ${JSON.stringify(path)}`)
      }
      const only = shown.map(path => ({ repo: 'root', path }))
      t.equal(await failed(client.call('POST /agents/{id}/land', { id: 'copy', only })), undefined)
      for (const path of shown) t.equal(readFileSync(join(workspace, path), 'utf8'), 'three\n', JSON.stringify(path))
    })

    await t.test('a saved point: compared and restored one by one', async t => {
      await client.call('POST /history/snapshots', { label: 'before' })
      write(workspace, 'odd', 'four\n')
      const { id } = await client.call('POST /history/snapshots', { label: 'after' })
      const { changes } = await client.call('GET /history/diff', { id: id! })
      t.strictSame(
        ALL.filter(name => !changes.some(({ path }) => path === `odd/${name}`)),
        [],
      )
      write(workspace, 'odd', 'five\n')
      for (const { path, scope } of changes) {
        t.equal(await failed(client.call('GET /history/file-diff', { id: id!, scope, path })), undefined, path)
      }
      const paths = changes.map(({ path }) => path)
      const { scope } = changes[0]!
      t.equal(await failed(client.call('POST /history/restore', { id: id!, scope, paths, force: true })), undefined)
      for (const path of paths) t.equal(readFileSync(join(workspace, path), 'utf8'), 'four\n', JSON.stringify(path))
    })

    await t.test('a turn: its own tools read, edit and delete them', async t => {
      // A script names a path in a line.
      const paths = ALL.map(name => `odd/${name}`).filter(path => !/[\n\t]|\s$/.test(path))
      for (const [verb, line] of Object.entries(TOOLS)) {
        const answers = answersOf(
          await runTurn(client, `tools-${verb}`, paths.map(line).join('\n'), { isolated: true }),
        )
        t.equal(answers.length, paths.length)
        for (const [nth, { ok, text }] of answers.entries()) t.ok(ok, `${verb} ${JSON.stringify(paths[nth])}: ${text}`)
      }
    })
  })
