import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { uncommittedNote } from '../../../../plugins/agent/briefing/uncommitted.js'
import type { GitChange, UncommittedChanges } from '../../../../plugins/git/contract.js'
import { exactly } from '../../../support/lists.js'
import { inGit } from '../../../support/daemon.js'
import { briefedWorld, saidIn } from './world.js'

const change = (path: string, status: GitChange['status'] = 'modified'): GitChange => ({ path, status })
const repo = (name: string, unstaged: GitChange[], more: Partial<UncommittedChanges> = {}): UncommittedChanges => ({
  ...{ repo: name, branch: 'main', conflicted: [], staged: [], unstaged },
  ...more,
})
const TOLD = { id: 'c', copied: ['root', 'lib'], folders: undefined }

t.test(
  'the note names what a copy lacks: no more than five lines, each on one line, and nothing of its own',
  async t => {
    const many = Array.from({ length: 12 }, (_, at) => change(`f${at}.txt`, 'added'))
    const found = uncommittedNote(
      [
        repo('root', [change('a.txt'), ...many], {
          staged: [change('a.txt')],
          truncated: 4,
          remote: { ahead: 2, behind: 1 },
          operation: 'merge',
        }),
        repo('lib', [change('own.ts'), change('x\ny.ts', 'deleted')], { origins: { 'own.ts': ['c', 'd'] } }),
        repo('apart', [change('not in the copy')]),
        repo('broken', [], { error: 'not a repository' }),
      ],
      TOLD,
    )!
    const lines = found.note.text.split('\n')
    t.equal(lines.length, 3)
    t.match(lines[1], /^- root \(main, 2 ahead, 1 behind, in a merge\): M a\.txt, A f0\.txt, .*A f6\.txt, 9 more$/)
    t.match(lines[2], /^- lib \(main\): D x y\.ts$/)
    t.match(found.notice, /14 uncommitted files .* are not in it \(a\.txt, f0\.txt, .*, …\)/)

    const eight = Array.from({ length: 8 }, (_, at) => repo(`r${at}`, [change('a')]))
    const all = uncommittedNote(eight, { ...TOLD, copied: eight.map(each => each.repo) })!
    t.equal(all.note.text.split('\n').length, 6)
    t.match(all.note.text, /\n- 4 more repositories$/)
  },
)

t.test('who reaches some folders is told of these alone, and nothing is said of nothing', async t => {
  const changes = [repo('root', [change('in/a.txt'), change('out/b.txt')])]
  const found = uncommittedNote(changes, { ...TOLD, folders: [{ path: 'in', access: 'work' }] })!
  t.match(found.note.text, 'in/a.txt')
  t.notMatch(found.note.text + found.notice, 'out/')
  t.equal(uncommittedNote(changes, { ...TOLD, folders: [{ path: 'else', access: 'read' }] }), undefined)
  t.equal(uncommittedNote([repo('root', [])], TOLD), undefined)
  t.equal(uncommittedNote([repo('root', [change('a')], { origins: { a: ['c'] } })], TOLD), undefined)
  const shared = uncommittedNote([repo('root', [change('a')], { origins: { a: ['c'] } })], {
    ...TOLD,
    copied: undefined,
  })
  t.match(shared, { note: { title: 'Uncommitted changes', text: /- root \(main\): M a$/ }, notice: undefined })
})

t.test('what landed and is not committed is told to the next conversation, once, and to people', async t => {
  const world = await briefedWorld(
    t,
    (_, nth) =>
      nth === 0 ? { calls: [{ name: 'Write', input: { path: 'b.txt', content: 'b\n' } }] } : { text: ['ok'] },
    { files: { 'a.txt': 'a\n' } },
    ['git'],
  )
  const { client, workspace, server } = world
  const asked = () => saidIn(server.requests.at(-1)!).asked
  await world.turn('one', { isolated: true })
  const landed = await client.call('POST /agents/{id}/land', { id: 'one' })
  t.same(landed, { landed: true, uncommitted: [{ repo: 'root', paths: ['b.txt'] }] })

  const frames = await world.turn('two', { isolated: true })
  t.match(asked(), /\[Not committed in the workspace\]\n.*\n- root \(main\): A b\.txt/)
  t.match(
    frames.filter(({ kind }) => kind === 'notice'),
    exactly({ source: 'copies', text: /1 uncommitted file of the workspace is not in it \(b\.txt\)/ }),
  )
  await world.turn('two')
  t.notMatch(asked(), 'Not committed', 'it knows that')
  writeFileSync(join(workspace, 'c.txt'), 'c\n')
  // Scans of git are shared for a moment.
  do {
    const notices = (await world.turn('two')).filter(({ kind }) => kind === 'notice')
    t.same(notices, [])
  } while (!asked().includes('A b.txt, A c.txt'))

  await world.turn('one')
  t.match(asked(), /\(main\): A c\.txt/, 'what it landed itself is in its copy')
  inGit(workspace, 'add', '.')
  inGit(workspace, 'commit', '-q', '-m', 'all')
  let three = 0
  do await world.turn(`three-${three++}`, { isolated: true })
  while (asked().includes('Not committed'))
})
