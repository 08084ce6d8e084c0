import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pty from '@lydell/node-pty'
import t, { type Test } from 'tap'
import {
  systemdUnit,
  serviceName,
  workspaceOfPlist,
  workspaceOfUnit,
  launchdPlist,
} from '../../../../sdk/cli/daemon/service-unit.js'
import { programName } from '../../../../sdk/cli/terminal/own-name.js'
import { folderOf, inGit, makeWorkspace } from '../../../support/daemon.js'
import { ALSO_UNWALLED } from '../../../support/walls.js'
import { going, PROGRAM, sandbox } from '../cli-process.js'

/** A person's home folder, with the command line in it. */
const homeOf = (t: Test) => {
  const home = folderOf(t)
  const env = { HOME: home, XDG_STATE_HOME: join(home, 'state'), PATH: '/usr/bin:/bin' }
  return {
    home,
    env,
    made: join(home, '.local/bin/sandbox'),
    run: (...args: string[]) => sandbox(args, { env, cwd: home }),
  }
}

t.test('link makes a command that works in every folder, with the Node of the program', async t => {
  const { home, made, run, env } = homeOf(t)
  t.match(await run('link'), {
    code: 0,
    out: /^made .*\.local\/bin\/sandbox\nyour shell does not look there yet: add export PATH=/,
  })
  t.equal(statSync(made).mode & 0o777, 0o755)
  const found = { ...env, PATH: `${join(home, '.local/bin')}:/bin` }
  t.match(execFileSync('sandbox', ['--version'], { cwd: '/', env: found, encoding: 'utf8' }), /^\d+\.\d+\.\d+\n$/)
  t.equal(programName(found, '/', PROGRAM), 'sandbox', 'hints name it from now on')
  t.match(await sandbox(['link'], { env: found, cwd: home }), { out: /^it is there already: [^\n]*\n$/ })
  t.match(await run('uninstall', '--yes'), {
    code: 0,
    out: /^removed .*\.local\/bin\/sandbox\nthe program itself is in /,
  })
  t.notOk(existsSync(made))
})

t.test('another program of that name stays as it is', async t => {
  const { home, made, run } = homeOf(t)
  mkdirSync(join(home, '.local/bin'), { recursive: true })
  writeFileSync(made, '#!/bin/sh\necho mine\n')
  t.match(await run('link'), { code: 5, err: /sandbox is there already and was not made by this program/ })
  t.match(await run('uninstall', '--yes'), { code: 0, out: /^there is no link, no service and no data to remove\n/ })
  t.equal(readFileSync(made, 'utf8'), '#!/bin/sh\necho mine\n')
})

t.test('uninstall removes data when told to, not while a daemon runs on it, and says what it kept', async t => {
  const { home, env, run } = homeOf(t)
  const workspace = join(home, 'code')
  makeWorkspace(workspace)
  const daemon = going(t, ['serve', '--workspace', workspace, '--port', '0'], { env })
  await daemon.until(/ready at/)
  const busy = await run('uninstall', '--data', '--yes')
  t.match(busy, {
    code: 5,
    out: '',
    err: /^sandbox: stop these daemons first; nothing was removed:\n +process \d+, .*code\n$/,
  })
  t.equal(await daemon.end(), 0)
  const kept = await run('uninstall', '--yes')
  t.match(kept, { code: 0, out: /^there is no link.*\nkept the data in (.*)\nthe program itself/ })
  const [, folder = ''] = /kept the data in (.*)\n/.exec(kept.out)!
  t.ok(existsSync(folder))
  t.match(await run('uninstall', '--data', '--yes'), { code: 0, out: `removed the data in ${folder}\n` })
  t.notOk(existsSync(folder))
  t.ok(existsSync(join(workspace, '.git')), 'the workspace stays')
  t.match(await run('uninstall', '--data'), { code: 0, out: /^there is no link/ })
})

t.test('uninstall keeps the history of repositories that were begun here', async t => {
  const { home, env, run } = homeOf(t)
  const workspace = join(home, 'code')
  makeWorkspace(workspace)
  const daemon = going(t, ['serve', '--workspace', workspace, '--port', '0'], { env })
  await daemon.until(/ready at/)
  t.match(await run('workspace', 'init-repo', 'begun'), { code: 0 })
  t.equal(await daemon.end(), 0)
  const [, data = ''] = /kept the data in (.*)\n/.exec((await run('uninstall', '--yes')).out)!
  t.match(await run('uninstall', '--data', '--yes'), {
    code: 0,
    out: `kept ${join(data, 'gitdirs')}: the history of repositories of the workspace is there\n`,
  })
  t.same(readdirSync(data), ['gitdirs'])
  t.match(inGit(join(workspace, 'begun'), 'log', '--format=%s'), /\S/)
})

t.test('a data folder that somebody chose is kept, since it may hold other things', async t => {
  const { home, env, run } = homeOf(t)
  const [workspace, data] = [join(home, 'code'), join(home, 'mine')]
  makeWorkspace(workspace)
  const daemon = going(t, ['serve', '--workspace', workspace, '--data', data, '--port', '0'], { env })
  await daemon.until(/ready at/)
  t.equal(await daemon.end(), 0)
  t.match(await run('uninstall', '--data', '--yes'), { out: new RegExp(`kept the data in ${data}\\n`) })
  t.ok(existsSync(join(data, 'machine.key')))
})

t.test('a unit file names its workspace, whatever characters that has', async t => {
  for (const workspace of ['/srv/code', '/srv/My Code', `/srv/a"b\\c%d&e<f>'g$h`, '/srv/ä 100%']) {
    const service = {
      workspace,
      command: ['/usr/bin/node', '/opt/main.js', `--workspace=${workspace}`, '--port=0'],
      env: {},
    }
    t.equal(workspaceOfUnit(systemdUnit(service)), workspace)
    t.equal(workspaceOfPlist(launchdPlist(service)), workspace)
    t.match(serviceName(workspace), /^sandbox-/)
  }
  t.equal(workspaceOfUnit('[Unit]\n'), undefined)
})

/** Starts the demonstration at a terminal, and collects what it prints. */
const sampleAt = (t: Test, env: { [name: string]: string }, cwd: string) => {
  const child = pty.spawn(process.execPath, [PROGRAM, 'serve', '--sample', '--port', '0'], {
    ...{ env: { ...env, ...ALSO_UNWALLED, NO_COLOR: '1' }, cwd, cols: 400, rows: 50 },
  })
  const ended = new Promise<number>(resolve => child.onExit(({ exitCode }) => resolve(exitCode)))
  t.teardown(async () => (child.kill('SIGTERM'), ended))
  let out = ''
  const listening = new Set<() => void>()
  child.onData(text => {
    out += text
    for (const listen of listening) listen()
  })
  const until = (fits: RegExp) =>
    new Promise<void>((resolve, reject) => {
      const listen = () => fits.test(out) && (listening.delete(listen), resolve())
      listening.add(listen)
      void ended.then(code => reject(new Error(`it ended with ${code}: ${out}`)))
      listen()
    })
  return { out: () => out, until, type: (text: string) => child.write(text), ended }
}

t.test('the demonstration offers the command once, at a terminal, and Ctrl-C still stops the daemon', async t => {
  const { home, env, made } = homeOf(t)
  const first = sampleAt(t, env, home)
  await first.until(/Make the command sandbox, in .*\[y\/N\]/)
  t.match(first.out(), /What to do next:/, 'after what is to be done next')
  first.type('\x03')
  t.equal(await first.ended, 0)
  t.notOk(existsSync(made))
  const second = sampleAt(t, env, home)
  await second.until(/Make the command sandbox/)
  second.type('y\r')
  await second.until(/made .*\.local\/bin\/sandbox/)
  t.ok(existsSync(made))
  second.type('\x03')
  t.equal(await second.ended, 0)
  const third = sampleAt(t, env, home)
  await third.until(/What to do next:.*serves a folder of yours\r\n/s)
  third.type('\x03')
  t.equal(await third.ended, 0)
  t.notMatch(third.out(), 'Make the command sandbox')
})
