import {
  chmodSync,
  chownSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { distrust, isOwnProgram } from '../../../../sdk/node/programs/own-programs.js'
import { listEnv, missingProgram, needProgram, ownEnv, ownProgram } from '../../../../sdk/node/programs/run.js'
import { declareTurnWritable } from '../../../../sdk/node/programs/turn-writable.js'

const base = realpathSync(t.testdir())
/** If other users can write to a parent of the checkout, no folder in it can be trusted. */
const fits = (await distrust(base).catch(() => undefined)) === undefined

/** Sets variables of this process during a test. */
const withEnv = (t: Pick<Test, 'teardown'>, env: { readonly [name: string]: string }): void => {
  const before = { ...process.env }
  t.teardown(() => {
    for (const name of Object.keys(env))
      before[name] === undefined ? delete process.env[name] : (process.env[name] = before[name])
  })
  Object.assign(process.env, env)
}

/** A folder with a program that exists nowhere else. */
const folderWith = (path: string, mode = 0o755): string => {
  mkdirSync(path, { recursive: true, mode: 0o755 })
  writeFileSync(join(path, 'only-here'), '#!/bin/sh\n')
  chmodSync(join(path, 'only-here'), mode)
  return path
}

t.test(
  "a program is taken from a folder that only the superuser and the daemon's user can write",
  { skip: !fits && 'other users can write to a parent of the checkout' },
  async t => {
    const folder = folderWith(join(realpathSync(t.testdir()), 'bin'))
    withEnv(t, { PATH: `${folder}:${process.env.PATH}` })
    t.equal(await ownProgram('only-here'), `${folder}/only-here`)
    t.match(await ownProgram('sh'), /^\/(usr\/)?bin\/sh$/, "the system's first")
    t.ok((await ownEnv()).PATH!.split(':').includes(folder))
  },
)

t.test('no program is taken from a folder that a turn can or could write, or other users can', async t => {
  const folder = realpathSync(t.testdir())
  withEnv(t, { HOME: join(folder, 'home') })
  declareTurnWritable([join(folder, 'workspace'), join(folder, 'data')])
  const open = folderWith(join(folder, 'open/bin'))
  chmodSync(join(folder, 'open'), 0o777)
  const group = folderWith(join(folder, 'group'))
  chmodSync(group, 0o775)
  const sticky = folderWith(join(folder, 'sticky'))
  chmodSync(sticky, 0o1777)
  mkdirSync(join(folder, 'links'))
  symlinkSync(join(folder, 'home/.local/bin/only-here'), join(folder, 'links/only-here'))
  symlinkSync('home/.local/bin', join(folder, 'linked'))
  symlinkSync('around', join(folder, 'around'))
  const places = [
    folderWith(join(folder, 'home/.local/bin')),
    folderWith(join(folder, 'workspace/bin')),
    folderWith(join(folder, 'data')),
    open,
    group,
    sticky,
    folderWith(join(folder, 'programs'), 0o777),
    join(folder, 'links'),
    join(folder, 'linked'),
    join(folder, 'around'),
    `${folder}/links/../home/.local/bin`,
  ]
  for (const place of places) {
    withEnv(t, { PATH: `${place}:${process.env.PATH}` })
    t.equal(await ownProgram('only-here'), undefined, place)
  }
  await t.rejects(needProgram('only-here'), {
    reason: 'missing-program',
    message: new RegExp(
      '^expected the program only-here and found '
        + String.raw`\S+/only-here, where (turns|others than the superuser) can write: `
        + String.raw`install it \(Debian: apt-get install only-here\)$`,
    ),
  })
  const { PATH } = await ownEnv()
  for (const place of places.filter(place => !/programs|links$/.test(place)))
    t.notOk(PATH!.split(':').includes(place), `${place} is in no PATH of the daemon's own programs`)
  for (const place of [join(folder, 'workspace/bin'), join(folder, 'data')])
    t.notOk(listEnv().PATH!.split(':').includes(place), `nor ${place} in that of a turn`)
  await t.rejects(missingProgram('nowhere-at-all'), {
    message: 'expected the program nowhere-at-all and found none: install it (Debian: apt-get install nowhere-at-all)',
  })
})

/** An empty folder of ours in a folder that all users can write. */
const temporaryIn = (t: Pick<Test, 'teardown'>, shared: string): string => {
  const temporary = realpathSync(mkdtempSync(join(shared, 'own-')))
  t.teardown(() => rmSync(temporary, { recursive: true, force: true }))
  return temporary
}

for (const shared of ['/tmp', '/var/tmp', '/dev/shm'])
  t.test(
    `a program below ${shared} is trusted where others can change nothing, and no turn finds it there`,
    async t => {
      const temporary = temporaryIn(t, shared)
      const own = folderWith(join(temporary, 'bin'))
      const open = folderWith(join(temporary, 'open'), 0o777)
      symlinkSync(own, join(temporary, 'link'))
      t.equal(await isOwnProgram(`${own}/only-here`), true)
      t.equal(await isOwnProgram(`${temporary}/link/only-here`), true)
      t.equal(await isOwnProgram(`${open}/only-here`), false)
      withEnv(t, { PATH: `${own}:${process.env.PATH}` })
      t.equal(await ownProgram('only-here'), `${own}/only-here`)
      t.notOk(listEnv().PATH!.split(':').includes(own), 'behind the wall a turn could have put another one there')
    },
  )

t.test(
  'in a folder that all users can write nothing of others is trusted',
  { skip: process.getuid?.() !== 0 && 'only the superuser can give files to others' },
  async t => {
    const temporary = temporaryIn(t, '/tmp')
    chmodSync(temporary, 0o1777)
    const others = folderWith(join(temporary, 'others'))
    symlinkSync('/usr/bin', join(temporary, 'link'))
    lchownSync(join(temporary, 'link'), 65_534, 65_534)
    t.equal(await isOwnProgram(`${others}/only-here`), true)
    t.equal(await isOwnProgram(`${temporary}/link/env`), false, 'the link could lead elsewhere tomorrow')
    chownSync(others, 65_534, 65_534)
    t.equal(await isOwnProgram(`${others}/only-here`), false)
    t.match(await distrust(temporary), /others/, 'others could add a program')
  },
)

t.test('a program that a person names may be in the home folder, but not where a turn can write', async t => {
  const folder = realpathSync(t.testdir())
  withEnv(t, { HOME: join(folder, 'home') })
  declareTurnWritable([join(folder, 'workspace')])
  const [home, workspace] = [folderWith(join(folder, 'home/cache')), folderWith(join(folder, 'workspace'))]
  t.equal(await isOwnProgram(`${home}/only-here`), false)
  t.equal(await isOwnProgram(`${home}/only-here`, { named: true }), true)
  t.equal(await isOwnProgram(`${workspace}/only-here`, { named: true }), false)
  t.equal(await isOwnProgram(`${home}/nothing`, { named: true }), false)
})

t.test('programs outside a wall get no settings of the person or of the daemon', async t => {
  withEnv(t, {
    LD_PRELOAD: '',
    NODE_OPTIONS: '',
    TMUX_TMPDIR: '/x',
    XDG_CONFIG_HOME: '/x',
    SHELL: '/x/bash',
    BASH_ENV: '/x',
    DAEMON_SECRET: 'x',
    TMPDIR: tmpdir(),
  })
  const { PATH, ...env } = await ownEnv({ TERM: 'dumb' })
  t.match(PATH, /(^|:)\/(usr\/)?bin(:|$)/)
  t.match(env, { HOME: '/nonexistent', SHELL: '/bin/sh', TERM: 'dumb' })
  t.same(
    Object.keys(env).filter(name => !/^(HOME|SHELL|TERM|USER|LOGNAME|LANG|LANGUAGE|LC_ALL|LC_CTYPE|TZ)$/.test(name)),
    [],
  )
})
