import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { installedAt, programNamed } from '../../../../sdk/node/programs/installed-at.js'
import { listEnv, run } from '../../../../sdk/node/programs/run.js'
import { homeOfProgram } from '../../../../sdk/node/wall/home.js'
import { walled } from '../../../../sdk/node/wall/wall.js'
import { folderOf } from '../../../support/daemon.js'

type Link = readonly [at: string, text: string]

/** Where the file `store/v2/bin/tool` lies behind these links, each asked for by its name. */
const INSTALLATIONS: { readonly [what: string]: { readonly links: readonly Link[]; readonly name: string } } = {
  'no link': { links: [], name: 'store/v2/bin/tool' },
  'a link to the file': { links: [['bin/tool', '../store/v2/bin/tool']], name: 'bin/tool' },
  'a link to a link': {
    links: [
      ['bin/tool', '../between/other'],
      ['between/other', '../store/v2/bin/tool'],
    ],
    name: 'bin/tool',
  },
  'the link of a folder': { links: [['bin', 'store/v2/bin']], name: 'bin/tool' },
  'a link of a version': { links: [['store/current', 'v2']], name: 'store/current/bin/tool' },
  'a link that leads through a link of a version': {
    links: [
      ['store/current', 'v2'],
      ['bin/tool', '../store/current/bin/tool'],
    ],
    name: 'bin/tool',
  },
  'links of folders, one in the other': {
    links: [
      ['one', 'two'],
      ['two', 'store'],
      ['store/current', 'v2'],
    ],
    name: 'one/current/bin/tool',
  },
}

t.test('a program is found and started behind the wall, whatever links lead to it', async t => {
  for (const [what, { links, name }] of Object.entries(INSTALLATIONS))
    await t.test(what, async t => {
      const folder = folderOf(t)
      const at = (path: string) => join(folder, path)
      for (const path of ['store/v2/bin', 'workspace', 'data']) mkdirSync(at(path), { recursive: true, mode: 0o700 })
      writeFileSync(at('store/v2/bin/tool'), '#!/bin/sh\necho "it runs: $1"\n')
      chmodSync(at('store/v2/bin/tool'), 0o755)
      for (const [path, text] of links) {
        mkdirSync(dirname(at(path)), { recursive: true })
        symlinkSync(text, at(path))
      }
      const { PATH } = process.env
      process.env.PATH = `${dirname(at(name))}:${PATH}`
      t.teardown(() => (process.env.PATH = PATH))
      for (const word of ['tool', at(name)]) {
        const program = (await programNamed(word)) ?? ''
        const {
          program: wall,
          args,
          env,
          cwd,
          enforced,
        } = await walled(
          {
            workspace: at('workspace'),
            data: at('data'),
            cwd: at('workspace'),
            home: await homeOfProgram(at('data'), 'tool'),
            readOnly: await installedAt(program),
            env: listEnv(),
          },
          program,
          [word],
        )
        t.ok(enforced)
        const { code, stdout, stderr } = await run(wall, args, { cwd, env, walled: true })
        t.same([code, stdout.toString()], [0, `it runs: ${word}\n`], stderr)
      }
    })
})
