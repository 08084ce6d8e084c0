import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { Bed, inGit, treeOf } from './agents-support.js'

const lines = (count: number, change: { [line: number]: string } = {}): string =>
  Array.from({ length: count }, (_, at) => change[at + 1] ?? `line ${at + 1}`).join('\n') + '\n'

t.test('everything a branch holds lands in the working tree, index and HEAD byte-equal', async t => {
  const bed = new Bed(t, main => {
    mkdirSync(join(main, 'old/deep'), { recursive: true })
    writeFileSync(join(main, 'old/deep/one.txt'), 'one\n')
    writeFileSync(join(main, 'old/deep/two.txt'), 'two\n')
    writeFileSync(join(main, 'edit.txt'), lines(20))
    writeFileSync(join(main, 'move.txt'), lines(40))
    writeFileSync(join(main, 'run.sh'), 'echo\n')
    writeFileSync(join(main, 'crlf.txt'), 'a\r\nb\r\n')
    writeFileSync(join(main, 'blob.bin'), randomBytes(100_000))
    writeFileSync(join(main, 'becomes'), 'file\n')
    mkdirSync(join(main, 'shrinks'))
    writeFileSync(join(main, 'shrinks/in'), 'in\n')
    writeFileSync(join(main, 'mine.txt'), lines(5))
  })
  writeFileSync(join(bed.main, 'mine.txt'), lines(5, { 2: 'my own edit' }))
  writeFileSync(join(bed.main, 'untracked.txt'), 'mine too\n')
  const { copy } = bed
  rmSync(join(copy, 'old'), { recursive: true })
  writeFileSync(join(copy, 'edit.txt'), lines(20, { 7: 'seven' }))
  rmSync(join(copy, 'move.txt'))
  mkdirSync(join(copy, 'new/deep'), { recursive: true })
  writeFileSync(join(copy, 'new/deep/moved.txt'), lines(40, { 3: 'three' }))
  chmodSync(join(copy, 'run.sh'), 0o755)
  writeFileSync(join(copy, 'crlf.txt'), 'a\r\nB\r\n')
  writeFileSync(join(copy, 'blob.bin'), randomBytes(3_000_000))
  symlinkSync('edit.txt', join(copy, 'link'))
  rmSync(join(copy, 'becomes'))
  mkdirSync(join(copy, 'becomes'))
  writeFileSync(join(copy, 'becomes/folder'), 'now\n')
  rmSync(join(copy, 'shrinks'), { recursive: true })
  writeFileSync(join(copy, 'shrinks'), 'now a file\n')
  for (const name of ['with space', 'ümlaut-☃', '-dash', '--', 'quo"te\'s', 'new\nline', 'tab\there', 'back\\slash', ':(glob)*', '*']) {
    writeFileSync(join(copy, name), `${name}\n`)
  }
  const before = bed.git()
  const result = await bed.land()
  t.equal(bed.git(), before, 'index, HEAD and main are as they were')
  t.equal(result?.conflict, undefined)
  t.match(result?.outcome, { repo: 'root', landedTip: bed.tip, landedHead: bed.head })
  t.same(treeOf(bed.main), { ...treeOf(copy), 'mine.txt': `file ${lines(5, { 2: 'my own edit' })}`, 'untracked.txt': 'file mine too\n' })
  t.equal(await bed.land(), undefined, 'a second landing has nothing to do')
})

t.test('an uncommitted edit of the same line is workspace, a committed one diverged, and nothing is written', async t => {
  const bed = new Bed(t, main => {
    for (const name of ['mine.txt', 'moved-on.txt', 'fits.txt', 'there.txt', 'both.txt']) writeFileSync(join(main, name), lines(20))
    writeFileSync(join(main, 'picture'), randomBytes(500))
    writeFileSync(join(main, 'picture-edited'), randomBytes(500))
  })
  const { copy, main } = bed
  for (const name of ['mine.txt', 'moved-on.txt', 'fits.txt', 'there.txt', 'both.txt']) writeFileSync(join(copy, name), lines(20, { 5: 'agent' }))
  for (const name of ['picture', 'picture-edited']) writeFileSync(join(copy, name), randomBytes(500))
  writeFileSync(join(copy, 'added.txt'), 'agent\n')
  writeFileSync(join(main, 'moved-on.txt'), lines(20, { 5: 'person' }))
  writeFileSync(join(main, 'both.txt'), lines(20, { 5: 'person' }))
  writeFileSync(join(main, 'picture'), randomBytes(600))
  bed.commit(main, 'moved on')
  writeFileSync(join(main, 'mine.txt'), lines(20, { 5: 'person' }))
  writeFileSync(join(main, 'both.txt'), lines(20, { 5: 'person', 12: 'more' }))
  writeFileSync(join(main, 'fits.txt'), lines(20, { 15: 'person' }))
  writeFileSync(join(main, 'there.txt'), lines(20, { 5: 'agent', 15: 'person' }))
  writeFileSync(join(main, 'picture-edited'), randomBytes(700))
  writeFileSync(join(main, 'added.txt'), 'person\n')
  const before = [bed.git(), treeOf(main), inGit(main, 'status', '--porcelain')]
  const index = bed.git()
  const result = await bed.land()
  t.equal(bed.git(), index)
  t.same([bed.git(), treeOf(main), inGit(main, 'status', '--porcelain')].slice(1), before.slice(1))
  t.same(Object.fromEntries(result!.conflict!.paths.map(({ path, reason }) => [path, reason])), {
    'mine.txt': 'workspace', 'moved-on.txt': 'diverged', 'both.txt': 'diverged', picture: 'binary', 'picture-edited': 'workspace', 'added.txt': 'workspace',
  })
  t.match(result?.conflict, { repo: 'root', clean: 1, mainBranch: 'main' })
})
