import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { recoverGitSteps } from '../../../plugins/agents/landing/git-steps.js'
import { Bed, inGit } from './support.js'

/** A checkout on its first commit, with the file that a second one holds although git ignores its name. */
const world = (t: Test) => {
  const bed = new Bed(t, main => writeFileSync(join(main, '.gitignore'), '*.log\n'))
  const from = bed.head
  writeFileSync(join(bed.main, 'run.log'), 'forced\n')
  inGit(bed.main, 'add', '--force', 'run.log')
  inGit(bed.main, 'commit', '-qm', 'forced')
  const to = bed.head
  inGit(bed.main, 'reset', '-q', '--soft', from)
  inGit(bed.main, 'rm', '-q', '--cached', 'run.log')
  return { bed, from, to, state: () => [bed.head, inGit(bed.main, 'status', '--porcelain')] }
}

t.test('a landing that was interrupted before its git steps moves HEAD, also to a commit of ignored names', async t => {
  const { bed, from, to, state } = world(t)
  t.same(state(), [from, ''])
  for (const round of ['at the start', 'once more']) {
    await recoverGitSteps(bed.main, bed.wall, { head: { from, to }, shown: ['run.log'] })
    t.same(state(), [to, ''], round)
  }
})

t.test('a person who moved HEAD since keeps it, and git shows the files of ignored names', async t => {
  const { bed, from, to, state } = world(t)
  bed.commit(bed.main, 'by hand')
  const own = bed.head
  await recoverGitSteps(bed.main, bed.wall, { head: { from, to }, shown: ['run.log'] })
  t.same(state(), [own, ' A run.log\n'])
})
