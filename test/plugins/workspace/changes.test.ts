import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Client } from '../../../sdk/client.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith } from '../../support/daemon.js'
import { joined } from '../../support/joined.js'
import { exactly } from '../../support/lists.js'
import { openEvents } from '../system/stream/events-support.js'

/** Waits until what changed since a generation has all of these paths. */
const until = async (client: Client, since: number, paths: readonly string[]): Promise<string[]> => {
  for (;;) {
    const changed = await client.call('GET /workspace/changed', { since })
    if (changed.reset || paths.every(path => changed.paths.includes(path))) return changed.paths
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

const world = async (t: Test) => {
  const daemon = await daemonWith(t, ['workspace', 'system', 'areas'], {
    files: { '.gitignore': 'dist/\n', 'docs/a.md': 'a', 'src/b.ts': 'b' },
  })
  const { generation } = await daemon.client.call('GET /workspace/tree', {})
  return { daemon, client: daemon.client, workspace: daemon.workspace, generation }
}

t.test('files that another program creates, changes, moves or removes are among the changed paths', async t => {
  const { client, workspace, generation } = await world(t)
  const made: string[] = []
  for (let at = 0; at < 100; at++) {
    const folder = `new/f${at}/deep`
    mkdirSync(join(workspace, folder), { recursive: true })
    for (let file = 0; file < 4; file++) {
      writeFileSync(join(workspace, folder, `${file}.txt`), 'x')
      made.push(`${folder}/${file}.txt`)
    }
  }
  await until(client, generation, made)
  const after = (await client.call('GET /workspace/tree', {})).generation
  renameSync(join(workspace, 'new'), join(workspace, 'moved'))
  writeFileSync(join(workspace, 'src/b.ts'), 'changed')
  rmSync(join(workspace, 'docs/a.md'))
  mkdirSync(join(workspace, 'dist'))
  writeFileSync(join(workspace, 'dist/made.js'), '')
  const changed = await until(client, after, ['new', 'moved', 'moved/f0/deep/0.txt', 'src/b.ts', 'docs/a.md'])
  t.notOk(
    changed.some(path => path.startsWith('dist')),
    'what is ignored is not reported',
  )
  writeFileSync(join(workspace, 'moved/f1/deep/late.txt'), '')
  t.ok(await until(client, after, ['moved/f1/deep/late.txt']), 'a folder that moved is still watched')
})

t.test('a folder that was removed and made again at once is watched', async t => {
  const { client, workspace, generation } = await world(t)
  for (let round = 0; round < 20; round++) {
    rmSync(join(workspace, 'src'), { recursive: true })
    mkdirSync(join(workspace, 'src'))
  }
  await until(client, generation, ['src'])
  const { generation: after } = await client.call('GET /workspace/tree', {})
  writeFileSync(join(workspace, 'src/later.ts'), 'x')
  t.ok((await until(client, after, ['src/later.ts'])).includes('src/later.ts'))
})

t.test('a change of the ignore rules asks to read the tree again', async t => {
  const { client, workspace, generation } = await world(t)
  mkdirSync(join(workspace, 'dist'))
  writeFileSync(join(workspace, '.gitignore'), '')
  for (;;) {
    const { reset } = await client.call('GET /workspace/changed', { since: generation })
    if (reset) break
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  const { generation: next } = await client.call('GET /workspace/tree', {})
  writeFileSync(join(workspace, 'dist/x'), '')
  t.ok(await until(client, next, ['dist/x']))
})

t.test('the events of the sandbox say what changed, to people limited to areas of these alone', async t => {
  const { daemon, client, workspace } = await world(t)
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  const ann = await joined(daemon, 'ann', 'viewer', ['docs'])
  const [all, limited] = await Promise.all([
    openEvents(t, daemon, ''),
    openEvents(t, { url: daemon.url, session: ann.session }, ''),
  ])
  const { generation } = await client.call('GET /workspace/tree', {})
  writeFileSync(join(workspace, 'src/b.ts'), 'changed')
  writeFileSync(join(workspace, 'docs/a.md'), 'changed')
  const changedOf = async (events: typeof all) => {
    for (;;) {
      const event = await events.next()
      if (event.kind === 'workspaceChanged') return event
    }
  }
  t.match(await changedOf(all), {
    paths: exactly('docs/a.md', 'src/b.ts'),
    since: generation,
    generation: generation + 1,
  })
  t.same((await changedOf(limited)).paths, ['docs/a.md'])
  for (let at = 0; at < 300; at++) writeFileSync(join(workspace, `many-${at}`), '')
  let event = await changedOf(all)
  while (!event.reset) event = await changedOf(all)
  t.same([event.paths, event.reset], [[], true], 'more than 200 paths are not listed')
  await Promise.all([all.close(), limited.close()])
})

t.test('what the daemon writes itself is among the changes when it answers', async t => {
  const { client, generation } = await world(t)
  await client.call('PUT /workspace/file', { path: 'made/here.txt', content: 'x' })
  const { paths } = await client.call('GET /workspace/changed', { since: generation })
  t.ok(paths.includes('made/here.txt'))
  t.ok(paths.includes('made'))
})

t.test('a generation from before the start asks to read again, and one to come is refused', async t => {
  const { client, generation } = await world(t)
  t.match(await client.call('GET /workspace/changed', { since: generation - 60_000 }), { reset: true })
  t.match(await refusalOf(() => client.call('GET /workspace/changed', { since: generation + 60_000 })), { status: 400 })
})

/** The paths of a tree, read folder by folder as a client does. */
const wholeTree = async (client: Client): Promise<Set<string>> => {
  const found = new Set<string>()
  const folders = ['.']
  for (const path of folders)
    for (let after: string | undefined; ;) {
      const { entries, hidden } = await client.call('GET /workspace/children', { path, ...(after && { after }) })
      for (const entry of entries) {
        found.add(entry.path)
        if (entry.type === 'dir' && !entry.closed && !entry.ignored) folders.push(entry.path)
      }
      if (hidden === 0) break
      after = entries.at(-1)!.name
    }
  return found
}

t.test('clients that follow the events have what is on disk after 10,000 changes within a second or two', async t => {
  const { daemon, client, workspace } = await world(t)
  const [events, other] = await Promise.all([openEvents(t, daemon, ''), openEvents(t, daemon, '')])
  let { generation } = await client.call('GET /workspace/tree', {})
  const held = await wholeTree(client)
  const at = (n: number, kind = 'f') => `many/d${n % 40}/${kind}${n}`
  for (let n = 0; n < 40; n++) mkdirSync(join(workspace, `many/d${n}`), { recursive: true })
  for (let n = 0; n < 4000; n++) writeFileSync(join(workspace, at(n)), 'x')
  for (let n = 0; n < 2000; n++) writeFileSync(join(workspace, at(n)), 'changed')
  for (let n = 0; n < 2000; n++) renameSync(join(workspace, at(n)), join(workspace, at(n, 'moved')))
  for (let n = 2000; n < 4000; n++) rmSync(join(workspace, at(n)))
  await client.call('PUT /workspace/file', { path: 'the-end', content: '' })
  /** Applies what changed since the last answer; true: the last change of all was among it. */
  const apply = async (): Promise<boolean> => {
    const changed = await client.call('GET /workspace/changed', { since: generation })
    generation = changed.generation
    if (changed.reset) {
      held.clear()
      for (const path of await wholeTree(client)) held.add(path)
    }
    for (const path of changed.paths) {
      const found = existsSync(join(workspace, path))
      if (found) held.add(path)
      else held.delete(path)
    }
    return held.has('the-end')
  }
  for (;;) {
    const event = await events.until('workspaceChanged')
    if (event.generation > generation && (await apply())) break
  }
  // What the system reports after the daemon's own note.
  const expected = await wholeTree(client)
  while (held.size !== expected.size || [...expected].some(path => !held.has(path))) {
    await events.until('workspaceChanged')
    await apply()
  }
  t.equal([...expected].filter(path => path.startsWith('many/')).length, 40 + 2000)
  t.ok((await other.until('workspaceChanged')).generation > 0, 'another client gets the events too')
  await Promise.all([events.close(), other.close()])
})
