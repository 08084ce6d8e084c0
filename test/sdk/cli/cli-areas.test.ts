import { renameSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { joined } from '../../support/joined.js'
import { exactly } from '../../support/lists.js'
import { sandbox } from './cli-process.js'

t.test('areas are written, granted, shown, revoked and deleted from the command line', async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace, { 'docs/a.md': 'a', 'docs/b.md': 'b', 'src/c.ts': 'c' })
  const daemon = await spawnDaemon(t, { workspace, data })
  const areas = (...args: string[]) => sandbox(['areas', ...args], { env: { SANDBOX_DATA: data } })
  t.match(await areas(), { code: 0, out: /^no areas: all members reach the whole workspace/ })
  const ann = await joined(daemon, 'ann', 'collaborator')

  t.match(await areas('write', 'docs', 'docs', 'docs/', '--label', 'Words'), {
    code: 0,
    out: /^made docs: docs \(work\)\nnext: sandbox areas give docs EMAIL\n$/,
  })
  t.match(await areas('give', 'docs', ann.email), { code: 5, err: /has the whole workspace.*pass narrow/ })
  t.match(await areas('give', 'docs', ann.email, '--narrow'), { code: 0, out: `docs is held by ${ann.email}\n` })
  t.match(await areas('write', 'docs', 'docs', 'src', '--read'), {
    code: 0,
    out: /^replaced docs: docs src \(read\)\n$/,
  })
  t.match(
    await areas(),
    {
      code: 0,
      out: new RegExp(`^ID +ACCESS +FOLDERS +PEOPLE +LABEL\\ndocs +read +docs, src +${ann.email} +Words\\n$`),
    },
    'its name is kept',
  )
  t.match(await areas('show', 'docs'), {
    code: 0,
    out: new RegExp(
      String.raw`^id +docs\nlabel +Words\naccess +for reading\nheld by +${ann.email}\nconversations +0\n.*\n\n`
        + String.raw`folders\nFOLDER +HOLDS\ndocs +2 files\nsrc +1 file\n\n`
        + String.raw`repositories\nREPOSITORY +COVERED\nroot +some files of it\n$`,
      's',
    ),
  })
  t.match(await areas('reach', 'docs'), {
    code: 0,
    out: new RegExp(
      `^people\\nPERSON +ROLE +ACCESS +THROUGH\\n(owner@sandbox.local.*\\n)?${ann.email} +collaborator +read +docs\\n$`,
    ),
  })
  t.match(await areas('reach', ann.email), {
    code: 0,
    out: /^people\nPERSON .*\n\nfolders\nFOLDER +ACCESS +THROUGH\ndocs +read +docs\nsrc +read +docs\n$/s,
  })
  renameSync(join(workspace, 'docs'), join(workspace, 'away'))
  t.match(await areas(), { code: 0, out: /\ndocs of docs grants nothing: missing\n/ })
  t.match(await areas('delete', 'docs'), { code: 5, err: new RegExp(`${ann.email} hold docs`) })
  t.match(await areas('take', 'docs', ann.email), { code: 0, out: 'docs is held by nobody\n' })
  t.match(await areas('reach', ann.email), {
    code: 0,
    out: new RegExp(`^people\\nPERSON .*\\n${ann.email} +collaborator +none\\n$`),
  })
  t.match(JSON.parse((await areas('--json')).out), {
    limited: false,
    areas: exactly({ id: 'docs', holders: { length: 0 } }),
  })
  t.match(await areas('delete', 'docs'), { code: 0, out: 'deleted docs; its folders and files stay\n' })
})

t.test('invalid arguments are refused with the expected form', async t => {
  for (const args of [
    ['what'],
    ['write', 'docs'],
    ['give', 'docs'],
    ['reach'],
    ['delete'],
    ['show'],
    ['list', 'x'],
    ['delete', 'a', 'b'],
  ]) {
    t.match(
      await sandbox(['areas', ...args]),
      { code: 2, err: /expected areas, areas show ID, write ID FOLDER…/ },
      args.join(' '),
    )
  }
  t.match(await sandbox(['areas', '--help']), { code: 0, out: /--narrow/ })
})
