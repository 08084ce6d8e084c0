import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { attach } from '../plugins/system/terminals/terminals-support.js'
import { endTerminals, folderOf, makeWorkspace, root, spawnDaemon } from '../support/daemon.js'
import { outside, walled } from './support.js'

t.test(
  "a maintainer's terminal finds nothing of the daemon and its terminals, and cannot sign in",
  walled(),
  async t => {
    const folder = folderOf(t)
    const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
    makeWorkspace(workspace, { 'README.md': '# work\n', '.sandbox/config/settings.json': '{"version":1}\n' })
    t.teardown(() => endTerminals(data))
    mkdirSync(join(folder, 'temporary'))
    const daemon = await spawnDaemon(t, {
      workspace,
      data,
      env: { DAEMON_SECRET: 'canary', TMPDIR: join(folder, 'temporary') },
    })
    const { socket } = JSON.parse(readFileSync(join(data, 'daemon.json'), 'utf8')) as { socket: string }
    const isDaemon = 'tr "\\0" " " < $p/cmdline 2>/dev/null | grep -q "kernel/main[.]js"'
    const looks: { [what: string]: string } = {
      'the key of the machine': `test -s ${data}/machine.key && echo found`,
      'any file of the data folder by name':
        `find ${folder} -name machine.key -size +0 2>/dev/null | grep -q . ` + '&& echo found',
      'the socket of its own terminal': `test -e ${data}/system/terminals/web-a && echo found`,
      'a socket of a terminal by name': `find ${folder} -type s -name "web-*" 2>/dev/null | grep -q . && echo found`,
      'a server of terminals': `cat /proc/[0-9]*/comm | grep -q "^tmux" && echo found`,
      'a way into its server of terminals':
        `cd ${data}/system/terminals 2>/dev/null && tmux -S web-a `
        + 'list-sessions 2>/dev/null | grep -q web-a && echo found',
      'the login socket': `test -S ${socket} && echo found`,
      'the environment of the daemon':
        `cat /proc/[0-9]*/environ 2>/dev/null | tr "\\0" "\\n" | grep -q ` + '"^DAEMON_SECRET=" && echo found',
      'the process of the daemon': `for p in /proc/[0-9]*; do ${isDaemon} && echo found && break; done`,
      'the memory of the daemon':
        `for p in /proc/[0-9]*; do ${isDaemon} && head -c 1 $p/maps | grep -q . && echo ` + 'found && break; done',
    }
    const script = join(workspace, 'looks.sh')
    writeFileSync(
      script,
      Object.values(looks)
        .map((command, at) => `answer=$( { ${command}; } 2>/dev/null); echo "look ${at} \${answer:-nothing}"`)
        .join('\n'),
    )
    await daemon.client.call('POST /system/terminals', { name: 'web-a' })
    const seen = outside(`sh ${script}`, workspace)
    for (const [at, what] of Object.keys(looks).entries())
      t.match(seen, `look ${at} found`, `outside the wall it finds ${what}`)

    const one = await attach(t, daemon, 'web-a', '&cols=200')
    one.type('clear; sh looks.sh; echo all-"looked"\r')
    const inside = await one.shows(/all-looked/)
    for (const [at, what] of Object.keys(looks).entries()) t.match(inside, `look ${at} nothing`, what)

    const cli = `${process.execPath} ${join(root, 'bundle', 'sdk', 'cli.js')}`
    one.type(
      `clear; ${cli} login --data ${data}; echo "code $?"; env | grep -c "DAEMON_SECRET\\|^TMUX\\|SANDBOX"; touch `
        + `.sandbox/config/x; echo written-"$?"\r`,
    )
    const tried = await one.shows(/written-\d/)
    t.match(tried, /code [1-9]/)
    t.notMatch(tried, /#login=/)
    t.match(tried, /[\r\n]0\r/, 'no variable of the daemon')
    t.match(tried, /written-1/)
    t.notOk(existsSync(join(workspace, '.sandbox/config/x')))
    one.type('echo changed > README.md; echo do-"ne"\r')
    await one.shows(/do-ne/)
    t.equal(readFileSync(join(workspace, 'README.md'), 'utf8'), 'changed\n', 'the workspace is writable')
  },
)
