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
    t.same(operations(top), ['show'])
    t.same(operations(data), ['empty'], 'the last mount there shows nothing')
    t.ok(mounts.findIndex(([, , to]) => to === data) > mounts.findIndex(([, , to]) => to === top))
    t.same(operations(home.gitconfig), ['show'])
  },
)
