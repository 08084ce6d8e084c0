import { mkdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { homeOfConversation } from '../../../../sdk/node/wall/home.js'
import { mountsOf } from '../../../../sdk/node/wall/view.js'

t.test(
  "the data folder is closed also if a deployment shows its parent, and the git identity is not a turn's "
    + 'to change',
  async t => {
    const top = realpathSync(t.testdir({ work: {}, data: { 'machine.key': 'x' }, other: {} }))
    const [workspace, data] = [join(top, 'work'), join(top, 'data')]
    mkdirSync(join(data, 'homes'), { recursive: true })
    const home = await homeOfConversation(data, 'c')
    const mounts = await mountsOf({
      workspace,
      data,
      cwd: workspace,
      env: {},
      home,
      grants: { read: [top], write: [] },
    })
    const operations = (path: string) => mounts.flatMap(([operation, , to]) => (to === path ? [operation] : []))
    t.same(operations(top), ['empty', 'seal'])
    t.same(operations(data), ['empty'], 'a folder of the wall around the home folder, not a cover')
    t.same(operations(join(top, 'other')), ['show'])
    t.same(operations(home.gitconfig), ['show'])
  },
)
