import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ownChanges } from '../../../plugins/agent/turn/environment/own-changes.js'
import { folderOf, inGit, makeWorkspace } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'

const commit = (dir: string): string => {
  inGit(dir, 'add', '-A')
  inGit(dir, 'commit', '-q', '-m', 'work')
  return inGit(dir, 'rev-parse', 'HEAD').trim()
}

t.test('what a program changed by itself is shown once, within bounds', async t => {
  const dir = folderOf(t)
  makeWorkspace(dir, { 'a.txt': 'a\n', 'b.txt': 'b\n', 'gone.txt': 'x\n', 'binary.bin': 'plain\n' })
  const from = inGit(dir, 'rev-parse', 'HEAD').trim()
  writeFileSync(join(dir, 'main.txt'), 'of the main line\n')
  const main = commit(dir)
  writeFileSync(join(dir, 'a.txt'), 'other\n')
  writeFileSync(join(dir, 'b.txt'), 'announced\n')
  writeFileSync(join(dir, 'binary.bin'), Buffer.from([1, 0, 2]))
  writeFileSync(join(dir, 'large.txt'), 'x'.repeat(300_000))
  rmSync(join(dir, 'gone.txt'))
  const to = commit(dir)
  const work = { dir, path: 'sub', from, to, main: [from, main] as const }
  t.match(
    await ownChanges([work], new Set(['sub/b.txt'])),
    exactly(
      { target: 'sub/a.txt', name: 'Write', content: exactly({ type: 'diff', oldText: 'a\n', newText: 'other\n' }) },
      { target: 'sub/binary.bin', content: exactly({ type: 'text', text: /is binary: 6 bytes before, 3 bytes now/ }) },
      { target: 'sub/gone.txt', name: 'Delete', content: exactly({ type: 'text', text: 'sub/gone.txt was deleted' }) },
      { target: 'sub/large.txt', content: exactly({ type: 'text', text: /300000 bytes now: too large/ }) },
    ),
  )
  t.same(await ownChanges([{ dir, path: '', from, to: from }], new Set()), [])
})

t.test('of many files fifty are shown, and the rest is counted', async t => {
  const dir = folderOf(t)
  makeWorkspace(dir)
  const from = inGit(dir, 'rev-parse', 'HEAD').trim()
  for (let nth = 0; nth < 60; nth++) writeFileSync(join(dir, `made-${nth}.txt`), `${nth}\n`)
  const frames = await ownChanges([{ dir, path: '', from, to: commit(dir) }], new Set())
  t.equal(frames.filter(({ kind }) => kind === 'tool_call').length, 50)
  t.match(frames.at(-1), { kind: 'notice', text: /10 more files/ })
})
