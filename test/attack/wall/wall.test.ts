import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { folderOf, makeWorkspace, root, spawnDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'
import { answersOf, bytesOf, outside, runs, shellTurn, walled } from '../support.js'
import { programFile } from '../../../sdk/node/programs/package.js'

/** The paths of the data folder that a turn can see. */
const OWN_FOLDERS = (data: string) => new RegExp(`${data}/(homes/conversations/[^/]+/home|caches|wall/[0-9a-f]+)`, 'g')
const CANARY = 'canary-of-the-daemon'
const NODE = process.execPath

/** A daemon in its own process, with a secret in its environment. */
const place = async (t: Test) => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace, { 'README.md': '# work\n', '.sandbox/config/settings.json': '{"version":1}\n' })
  mkdirSync(join(folder, 'state/sandbox/0123456789abcdef'), { recursive: true })
  writeFileSync(join(folder, 'state/sandbox/0123456789abcdef/machine.key'), 'the key of another sandbox')
  mkdirSync(join(folder, 'temporary'))
  writeFileSync(join(folder, 'handed'), 'an open file of the program that started the daemon')
  // Port 0 for the debugger: any free one, printed on standard error.
  const daemon = await spawnDaemon(t, {
    workspace,
    data,
    starter: ['bash', '-c', 'exec 40< "$0"; exec "$@"', join(folder, 'handed')],
    env: {
      DAEMON_SECRET: CANARY,
      NODE_OPTIONS: '--inspect-port=0',
      XDG_STATE_HOME: join(folder, 'state'),
      TMPDIR: join(folder, 'temporary'),
    },
  })
  const { socket } = JSON.parse(readFileSync(join(data, 'daemon.json'), 'utf8')) as { socket: string }
  return { ...daemon, folder, socket }
}

const DAEMON = 'kernel/main[.]js'

/** Commands that look for parts of the daemon; each prints `found` if it finds one. */
const looks = ({ data, folder, socket, pid }: Awaited<ReturnType<typeof place>>): { [what: string]: string } => {
  const ask = (request: object) => {
    const program = [
      `const s = require("net").connect("${socket}")`,
      's.on("error", e => console.log(e.code))',
      's.on("data", d => { const { prove } = JSON.parse(d)',
      'if (!prove) return /code|token/.test(d) && console.log("found")',
      `const hash = require("crypto").createHash("sha256").update(prove + "\\n${socket}")`,
      'require("fs").writeFileSync("/proc/self/comm", hash.digest("base64url").slice(0, 15))',
      `s.write(JSON.stringify({ ...${JSON.stringify(request)}, pid: process.pid }) + "\\n") })`,
    ]
    return `${NODE} -e '${program.join('; ')}'`
  }
  const eachDaemon = (work: string) =>
    `for p in /proc/[0-9]*; do tr "\\0" " " < $p/cmdline 2>/dev/null | grep -q "${DAEMON}" && { ${work}; } `
    + '2>/dev/null; done; true'
  return {
    'the note with the address of the socket': `grep -q socket ${data}/daemon.json 2>/dev/null && echo found; true`,
    'the key of the machine': `test "$(wc -c < ${data}/machine.key 2>/dev/null || echo 0)" -gt 0 && echo found; true`,
    'any file of the data folder by name':
      `find ${folder} -name machine.key -size +0 2>/dev/null | grep -q . && ` + 'echo found; true',
    'the record of what turns cost':
      `find ${folder} -path "*/journals/usage/*" -size +0 2>/dev/null | grep -q . && ` + 'echo found; true',
    'the data folder through the root of another process':
      'for p in /proc/[0-9]*; do test -s '
      + `$p/root${data}/machine.key && echo found && break; done 2>/dev/null; true`,
    'the data folder through the working folder of another process':
      'for p in /proc/[0-9]*; do test -s '
      + '$p/cwd/../data/machine.key && echo found && break; done 2>/dev/null; true',
    'another sandbox of the same user':
      `cat ${folder}/state/sandbox/*/machine.key 2>/dev/null | grep -q another ` + '&& echo found; true',
    'the login socket': `test -S ${socket} && echo found; true`,
    'a login code': ask({ do: 'login' }),
    'a session of the owner': ask({ do: 'session', device: 'turn' }),
    'the process by its command':
      `cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " " | grep -q "${DAEMON}" && ` + 'echo found; true',
    'the environment':
      `cat /proc/[0-9]*/environ 2>/dev/null | tr "\\0" "\\n" | grep -q "^DAEMON_SECRET=" && echo ` + 'found; true',
    'the memory': eachDaemon('head -c 1 $p/maps | grep -q . && echo found'),
    'an open file': eachDaemon('ls -l $p/fd | grep -q . && echo found'),
    'a way to signal it': eachDaemon('kill -0 ${p#/proc/} && echo found'),
    'its number':
      `test -d /proc/${pid} && tr "\\0" " " < /proc/${pid}/cmdline | grep -q "${DAEMON}" && echo ` + 'found; true',
  }
}

t.test('a turn finds nothing of the daemon: no data, socket, process, memory or environment', walled(), async t => {
  const daemon = await place(t)
  const { client, workspace } = daemon
  await shellTurn(client, 'first', ['true'])
  const probes = Object.entries(looks(daemon))
  for (const [what, command] of probes)
    t.match(outside(command, workspace), /found/, `outside the wall it finds ${what}`)
  for (const [conversation, options] of [
    ['shared', {}],
    ['alone', { isolated: true }],
  ] as const) {
    const answers = await shellTurn(
      client,
      conversation,
      probes.map(([, command]) => command),
      options,
    )
    for (const [at, [what]] of probes.entries()) t.notMatch(answers[at], /found/, `${conversation}: ${what}`)
  }
})

t.test('a turn inherits no variable and no open file of the daemon', walled(), async t => {
  const { client, data, folder } = await place(t)
  const handed = join(folder, 'handed')
  t.match(
    outside(`bash -c 'exec 40< ${handed}; exec sh -c "readlink /proc/self/fd/40"'`, folder),
    'handed',
    'a program without a wall inherits it',
  )
  const probes = ['env', 'ls -l /proc/self/fd; true', 'cat /proc/self/environ /proc/1/environ | tr "\\0" "\\n"']
  for (const [conversation, options] of [
    ['shared', {}],
    ['alone', { isolated: true }],
  ] as const) {
    const text = (await shellTurn(client, conversation, probes, options)).join('\n').replaceAll(OWN_FOLDERS(data), '')
    t.match(text, /^PATH=/m, 'the list was printed')
    for (const never of [CANARY, 'DAEMON_SECRET', data, handed, 'sqlite', 'journals'])
      t.notMatch(text, never, `${conversation}: ${never}`)
    const open = text.split('\n').flatMap(line => / (\d+) -> (?!\/proc\/)/.exec(line)?.[1] ?? [])
    t.same(
      open.filter(fd => Number(fd) > 2),
      [],
      `${conversation}: no open file except the standard streams`,
    )
  }
})

t.test('a turn cannot use sandbox login or other commands of the command line', walled(), async t => {
  const { client, data, url, workspace } = await place(t)
  const cli = `${NODE} ${programFile('sdk/cli.js')}`
  const commands = [
    `${cli} login --data ${data}`,
    `SANDBOX_DATA=${data} ${cli} login`,
    `${cli} login --url ${url}`,
    `${cli} token list --data ${data}`,
  ]
  t.match(outside(`${commands[0]}; true`, workspace), /#login=/, 'outside the wall it prints a link')
  for (const [conversation, options] of [
    ['shared', {}],
    ['alone', { isolated: true }],
  ] as const) {
    const answers = await shellTurn(
      client,
      conversation,
      commands.map(command => `${command} 2>&1`),
      options,
    )
    for (const answer of answers) t.notMatch(answer, /#login=|sb[sc]_/)
    for (const answer of answers) t.match(answer, /\[exit [1-9]/, answer)
  }
  t.same((await client.call('GET /system/control/tokens')).tokens, [])
})

t.test('a turn changes neither the program of the daemon nor its compile cache', walled(), async t => {
  const { client, folder } = await place(t)
  const compiled = join(folder, 'state/sandbox/compiled')
  const written = join(dirname(root), `written-by-a-turn-${process.pid}`)
  t.teardown(() => rmSync(written, { force: true }))
  for (const [conversation, options] of [
    ['shared', {}],
    ['alone', { isolated: true }],
  ] as const) {
    const commands = [`touch ${compiled}/x`, `echo x > ${written}`, `echo x >> ${programFile('kernel/main.js')}`]
    for (const answer of await shellTurn(client, conversation, commands, options)) t.match(answer, /\[exit [1-9]/)
  }
  t.notOk(existsSync(written))
  t.notOk(existsSync(join(compiled, 'x')))
  t.ok(readdirSync(compiled, { recursive: true }).length > 3, 'the compile cache is there')
  t.notOk(existsSync(join(folder, 'temporary/node-compile-cache')), 'and nowhere else')
})

t.test(
  'in the network of the machine the daemon treats a turn like any client without a credential',
  walled(),
  async t => {
    const { client, url } = await place(t)
    await client.call('POST /settings/patch', { set: { network: 'shared' } })
    const ask = (method: string, path: string, body = '{}') => {
      const options = { method, headers: { 'content-type': 'application/json' }, ...(method !== 'GET' && { body }) }
      return `${NODE} -e 'fetch("${url}${path}", ${JSON.stringify(options)}).then(r => console.log(r.status))'`
    }
    const commands = [
      ask('GET', '/info'),
      ask('GET', '/agents'),
      ask('POST', '/agent', '{"prompt":"say x"}'),
      ask('POST', '/system/control/tokens', '{"label":"x","scope":"land"}'),
      ask('POST', '/system/session'),
      ask('POST', '/system/session', '{"login":"x"}'),
      ask('POST', '/system/session', '{"claim":"x"}'),
    ]
    t.same(
      await shellTurn(client, 'shared', commands),
      Array.from(commands, () => '401'),
    )
  },
)

t.test('a turn opens no debug port of the daemon', walled(), async t => {
  const { client, pid, stderr, process: child } = await place(t)
  const signal = `for n in $(seq 1 4000) ${pid} -1; do kill -USR1 $n; done 2>/dev/null; echo sent`
  for (const [conversation, options] of [
    ['shared', {}],
    ['alone', { isolated: true }],
  ] as const) {
    // `-1` signals every process that it may signal, including the shell itself.
    await runTurn(client, conversation, runs(signal), options)
  }
  await client.call('GET /info')
  t.notMatch(stderr(), /Debugger listening/)
  const heard = new Promise<void>(resolve =>
    child.stderr!.on('data', () => /Debugger listening/.test(stderr()) && resolve()),
  )
  process.kill(pid, 'SIGUSR1')
  await heard
  t.match(stderr(), /Debugger listening/, 'the same signal from outside opens one')
})

t.test('a turn cannot change or replace .sandbox of the workspace', walled(), async t => {
  const { client, workspace } = await place(t)
  mkdirSync(join(workspace, '.sandbox/x'), { recursive: true })
  const before = bytesOf(join(workspace, '.sandbox'))
  const tries = [
    'echo "{}" > .sandbox/config/settings.json',
    'echo x > .sandbox/new',
    'mkdir .sandbox/y',
    'rm -rf .sandbox',
    'mv .sandbox other',
    'mv .sandbox/config .sandbox/c2',
    'ln -s /etc .sandbox/z',
    'mount -o remount,rw,bind .sandbox',
    'umount .sandbox',
    `cd .. && mv ${workspace}/.sandbox ${workspace}/gone`,
    'unshare -rm sh -c "umount .sandbox; echo x > .sandbox/u"',
    'git --work-tree=.sandbox checkout -f -- README.md',
    'git --git-dir=.sandbox/g init -q',
    'cp -r .git .sandbox/.git',
  ]
  for (const [conversation, options] of [
    ['shared', {}],
    ['alone', { isolated: true }],
  ] as const) {
    const answers = await shellTurn(
      client,
      conversation,
      tries.map(each => `${each} 2>&1 && echo DONE`),
      options,
    )
    for (const [at, answer] of answers.entries()) t.notMatch(answer, /DONE/, `${conversation}: ${tries[at]}`)
    t.same(bytesOf(join(workspace, '.sandbox')), before)
  }
  for (const [conversation, options] of [
    ['shared', {}],
    ['alone', { isolated: true }],
  ] as const) {
    const tools = [
      'write .sandbox/config/settings.json\n| {}',
      'write .sandbox/new\n| x',
      'write .SANDBOX/new\n| x',
      'write .sandbox./new\n| x',
      'move README.md -> .sandbox/README.md',
      'delete .sandbox/config/settings.json',
      'delete .sandbox',
      'move .sandbox -> elsewhere',
      'edit .sandbox/config/settings.json\n| - {"version":1}\n| + {}',
    ]
    const answers = answersOf(
      await runTurn(client, conversation, `run ln -sfn .sandbox way\n${tools.join('\n')}\nwrite way/new\n| x`, options),
    )
    t.equal(answers.length, tools.length + 2)
    for (const [at, { ok, text }] of answers.slice(1).entries())
      t.notOk(ok, `${conversation}: ${tools[at] ?? 'through a link'}: ${text}`)
    t.same(bytesOf(join(workspace, '.sandbox')), before)
  }
  writeFileSync(join(workspace, '.sandbox/config/settings.json'), '{}')
  t.notSame(bytesOf(join(workspace, '.sandbox')), before, 'outside the wall it can be written')
})

t.test('the tools of a turn read and write nothing outside its tree, through any links', walled(), async t => {
  const { client, data, folder } = await place(t)
  const elsewhere = join(folder, 'elsewhere')
  mkdirSync(elsewhere)
  writeFileSync(join(elsewhere, 'secret.txt'), 'the secret of another folder\n')
  const before = bytesOf(elsewhere)
  const links = [
    `ln -sfn ${data} d`,
    `ln -sfn ${elsewhere} e`,
    `ln -sfn ${elsewhere}/secret.txt f`,
    'mkdir -p sub && ln -sfn ../.. sub/up',
    `ln -sfn ${elsewhere}/made g`,
  ].map(each => `run ${each}`)
  const tools = [
    'read d/machine.key',
    'read d/daemon.json',
    'list d',
    'image d/machine.key',
    'write d/new\n| x',
    'read e/secret.txt',
    'list e',
    'read f',
    'write f\n| x',
    'append f\n| x',
    'write g\n| x',
    'write e/new\n| x',
    'delete e/secret.txt',
    'move e/secret.txt -> mine',
    'move README.md -> e/README.md',
    'read sub/up/elsewhere/secret.txt',
    'list sub/up',
    'read ../elsewhere/secret.txt',
    `read ${elsewhere}/secret.txt`,
    'edit f\n| - the secret of another folder\n| + x',
    'read /etc/hostname',
    'read .git/../../elsewhere/secret.txt',
    'write .git/hooks/pre-commit\n| x',
    'write .GIT/config\n| x',
    'write sub/.git/config\n| x',
  ]
  for (const [conversation, options] of [
    ['shared', {}],
    ['alone', { isolated: true }],
  ] as const) {
    const answers = answersOf(await runTurn(client, conversation, [...links, ...tools].join('\n'), options)).slice(
      links.length,
    )
    t.equal(answers.length, tools.length)
    for (const [at, { ok, text }] of answers.entries()) {
      t.notOk(ok, `${conversation}: ${tools[at]}`)
      t.notMatch(text, /the secret of|"socket"/)
    }
    t.same(bytesOf(elsewhere), before)
    t.notOk(existsSync(join(data, 'new')))
  }
  t.match(
    answersOf(await runTurn(client, 'shared', 'write plain.txt\n| x\nread plain.txt')),
    exactly({ ok: true }, { ok: true, text: 'x' }),
    'a plain file is read and written',
  )
})

t.test('a tool does not follow a link that appears while it works', walled(), async t => {
  const { client, folder } = await place(t)
  const elsewhere = join(folder, 'elsewhere')
  mkdirSync(elsewhere)
  writeFileSync(join(elsewhere, 'file'), 'the secret of another folder\n')
  const before = bytesOf(elsewhere)
  const swap =
    `mkdir -p real spare && echo mine > real/file && ln -sfn ${elsewhere} link && ln -sfn real way && `
    + 'for i in $(seq 1 100000); do ln -sfn real way; mv -T spare was 2>/dev/null; rm -rf spare; '
    + `ln -sfn ${elsewhere} spare; rm -f spare; mkdir -p spare; ln -sfn ${elsewhere} way; `
    + 'test -e stop && break; done; echo swapped'
  const { run } = await client.call('POST /agent', { conversationId: 'swaps', prompt: runs(swap) })
  t.ok(run)
  const answers = answersOf(
    await runTurn(
      client,
      'reads',
      'repeat 150 read way/file\nrepeat 100 write way/new\n| mine\nrepeat 100 write spare/new\n| mine\nwrite stop\n| x',
    ),
  )
  t.notMatch(answers.map(({ text }) => text).join('\n'), 'the secret of')
  t.ok(
    answers.some(({ ok }) => ok),
    'some calls met the folder',
  )
  t.ok(
    answers.some(({ ok }) => !ok),
    'some calls met the link',
  )
  t.same(bytesOf(elsewhere), before)
  await client.call('POST /agent/stop', { conversationId: 'swaps' })
})
