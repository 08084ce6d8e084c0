import t from 'tap'
import { saysElsewhere } from '../../../plugins/pipelines/fix/prompt.js'

t.test('an agent that says in its last line that the fault is elsewhere is not asked again', t => {
  for (const report of ['It is theirs.\nnot here: the runner has no disk left', '**Not here**: x\n\n'])
    t.ok(saysElsewhere(report), report)
  for (const report of ['', 'not here: x\nI went on.', 'It is not here.', 'nothing'])
    t.notOk(saysElsewhere(report), report)
  t.end()
})
