import { once } from 'node:events'
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import t, { type Test } from 'tap'
import type { Client } from '../../../sdk/client.js'
import type { Frame } from '../../../plugins/agent/contract.js'
import { daemonWith, inGit, spawnDaemon, folderOf, makeWorkspace } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { answersOf, runs, shellTurn, walled } from '../support.js'

const CANARY = 'canary-of-the-person'
const NOBODY = 65_534
const PRIVATE = Object.values(networkInterfaces())
  .flatMap(all => all ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address

const serving = async (t: Test, text = CANARY, host = '127.0.0.1'): Promise<{ server: Server; port: number }> => {
  const server = createServer((_, answer) => answer.end(text)).listen(0, host)
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { server, port: (server.address() as AddressInfo).port }
}

const curl = (url: string, ...more: string[]): string => `curl -sS -m 10 ${more.join(' ')} ${url}`
/** Uses the proxy also for hosts that programs connect to directly. */
const PROXIED = "--noproxy ''"
const DIRECT = "--noproxy '*'"

const notices = (frames: readonly Frame[]): string[] =>
  frames.flatMap(frame => (frame.kind === 'notice' && frame.source === 'network' ? [frame.text] : []))
const kinds = (frames: readonly Frame[]): (string | undefined)[] =>
  frames.flatMap(frame => (frame.kind === 'worktree' ? [frame.network] : []))
const allow = (client: Client, networkAllow: string[], more: object = {}) =>
  client.call('POST /settings/patch', { set: { networkAllow, ...more } })

/** Starts a server on port 3000 that sends its word, and reads port 3000 once both conversations have one. */
const page = (word: string): string =>
  `node -e 'require("http").createServer((_, a) => a.end("${word}")).listen(3000)' & for i in $(seq 50); do curl `
  + '-s -m 1 http://localhost:3000 && break; sleep 0.1; done; sleep 1; kill $!'

t.test('two conversations serve different pages on port 3000 at once', walled(), async t => {
  const { client } = await daemonWith(t, [])
  const [one, two, tree] = await Promise.all([
    shellTurn(client, 'one', [page('one')], { isolated: true }),
    shellTurn(client, 'two', [page('two')], { isolated: true }),
    shellTurn(client, 'tree', [page('tree')]),
  ])
  t.strictSame([one[0], two[0], tree[0]], ['one', 'two', 'tree'])
})

t.test(
  'a turn reaches neither the daemon nor a service of the machine, directly or through the proxy, and gets the reason',
  walled(),
  async t => {
    const { client, url } = await daemonWith(t, [])
    const { port } = await serving(t, CANARY, '0.0.0.0')
    const daemon = new URL(url).port
    for (const [id, options] of [
      ['alone', { isolated: true }],
      ['shared', {}],
    ] as const) {
      const targets = [
        `127.0.0.1:${port}`,
        `localhost:${port}`,
        ...(PRIVATE ? [`${PRIVATE}:${port}`] : []),
        `127.0.0.1:${daemon}`,
        '169.254.169.254:80',
      ]
      const commands = targets.flatMap(target => [
        curl(`http://${target}/health`, DIRECT),
        curl(`http://${target}/health`, PROXIED),
        curl(`http://${target}/health`, PROXIED, '-x socks5h://127.0.0.1:18999'),
      ])
      const frames = await runTurn(client, id, commands.map(runs).join('\n'), options)
      const answers = answersOf(frames).map(({ text }) => text)
      t.equal(answers.length, commands.length)
      t.notMatch(answers.join('\n'), new RegExp(`${CANARY}|"ok"|sandbox-daemon`), `${id}: nothing answered`)
      for (let at = 0; at < targets.length; at++) {
        t.match(answers[at * 3 + 1], /is not reached from this conversation/, `${id}: the sentence of ${targets[at]}`)
        t.match(answers[at * 3 + 2], /SOCKS5.*\(2\)/, `${id}: SOCKS reports that it is not allowed`)
      }
      const hosts = new Set(targets.map(target => target.slice(0, target.lastIndexOf(':'))))
      t.equal(notices(frames).length, hosts.size, `${id}: one notice for each host`)
      t.match(notices(frames).join('\n'), `sandbox network allow localhost:${port}`)
      const { events } = await client.call('GET /activity', { type: 'network.refused', conversationId: id })
      t.equal(events.length, hosts.size, `${id}: one entry for each host`)
      t.strictSame(kinds(frames), id === 'shared' ? [] : ['own'])
    }
  },
)

t.test(
  'the same holds for the daemon of an ordinary user',
  { ...walled(), ...(process.getuid?.() !== 0 && { skip: 'only the superuser can become another user' }) },
  async t => {
    const folder = folderOf(t)
    const [workspace, data] = [`${folder}/w`, `${folder}/d`]
    makeWorkspace(workspace)
    chmodSync(folder, 0o755)
    chownSync(folder, NOBODY, NOBODY)
    execFileSync('chown', ['-R', `${NOBODY}:${NOBODY}`, workspace])
    execFileSync('install', ['-d', '-m', '700', '-o', String(NOBODY), data])
    const { client, url } = await spawnDaemon(t, {
      workspace,
      data,
      user: NOBODY,
      env: { HOME: folder, XDG_RUNTIME_DIR: folder, XDG_STATE_HOME: folder },
    })
    const { port } = await serving(t)
    const targets = [`127.0.0.1:${port}`, new URL(url).host, '10.255.255.1:80']
    const frames = await runTurn(
      client,
      'c',
      targets
        .flatMap(target => [runs(curl(`http://${target}`, DIRECT)), runs(curl(`http://${target}`, PROXIED))])
        .join('\n'),
      { isolated: true },
    )
    const answers = answersOf(frames).map(({ text }) => text)
    t.match(
      answers,
      targets.flatMap(() => [/Couldn't connect|Failed to connect/, /is not reached from this conversation/]),
    )
    t.strictSame(kinds(frames), ['own'])
    t.equal(notices(frames).length, 2)
    await allow(client, [`localhost:${port}`])
    t.match(
      await shellTurn(client, 'c', [
        curl(`http://127.0.0.1:${port}`, PROXIED),
        curl(`http://127.0.0.1:${port}`, DIRECT),
        'id -u',
      ]),
      exactly(CANARY, CANARY, String(NOBODY)),
    )
  },
)

t.test(
  'a target that a maintainer allows is reached by the next connection of the same turn, until it is removed',
  walled(),
  async t => {
    const { client } = await daemonWith(t, [])
    const { port } = await serving(t)
    const near = PRIVATE ? await serving(t, CANARY, PRIVATE) : undefined
    const ask = [
      curl(`http://127.0.0.1:${port}`, DIRECT),
      curl(`http://localhost:${port}`, PROXIED),
      ...(near ? [curl(`http://${PRIVATE}:${near.port}`)] : []),
    ]
    const script = [
      'ask first?',
      '| go: on',
      ...ask.map(runs),
      'ask second?',
      '| go: on',
      ...ask.map(runs),
      'ask third?',
      '| go: on',
      ...ask.map(runs),
    ].join('\n')
    await client.call('POST /agent', { conversationId: 'c', prompt: script, isolated: true })
    const watched = framesOf(client, 'c')
    const lists = [[], [`localhost:${port}`, ...(near ? [`${PRIVATE}:${near.port}`] : [])], []]
    for (const [at, list] of lists.entries()) {
      const question = ['first', 'second', 'third'][at]
      const { requestId } = await watched.until(({ kind }) => kind === 'question')
      await allow(client, list)
      // The port opens inside shortly after the settings are written.
      await new Promise(resolve => setTimeout(resolve, 1000))
      await client.call('POST /agent/reply', { requestId, kind: 'question', answers: { [`${question}?`]: 'go' } })
    }
    const frames = (await watched.all()).map(({ event }) => event)
    const answers = answersOf(frames)
      .map(({ text }) => text === CANARY)
      .slice(-ask.length * 3)
    const times = (value: boolean) => ask.map(() => value)
    t.strictSame(answers, [...times(false), ...times(true), ...times(false)])
  },
)

t.test(
  'with network "shared" in the settings the next turn has the network of the machine, and its frame says so',
  walled(),
  async t => {
    const { client } = await daemonWith(t, [])
    const { port } = await serving(t)
    await client.call('POST /settings/patch', { set: { network: 'shared' } })
    const frames = await runTurn(client, 'c', runs(curl(`http://127.0.0.1:${port}`)), { isolated: true })
    t.equal(answersOf(frames)[0]?.text, CANARY)
    t.strictSame(kinds(frames), ['shared'])
    await client.call('POST /settings/patch', { set: { network: 'own' } })
    const again = await runTurn(client, 'c', runs(curl(`http://127.0.0.1:${port}`)), { isolated: true })
    t.not(answersOf(again)[0]?.text, CANARY)
    t.strictSame(kinds(again), ['own'])
  },
)

t.test('Fetch reaches the loopback of the conversation, and the same targets as its programs', walled(), async t => {
  const { client, url } = await daemonWith(t, [])
  const { port } = await serving(t)
  const daemon = new URL(url).port
  const server = `node -e 'require("http").createServer((_, a) => a.end("inside")).listen(${port}, "127.0.0.1")'`
  const script = [
    'helper& serves',
    `| ${runs(server)}`,
    runs(`for i in $(seq 100); do ${curl(`http://127.0.0.1:${port}`)} && break; sleep 0.1; done`),
    `fetch http://localhost:${port}/`,
    `fetch http://localhost:${daemon}/health`,
    'fetch http://169.254.169.254/',
    'fetch http://10.255.255.1/',
    'fail enough',
  ]
  const frames = await runTurn(client, 'c', script.join('\n'), { isolated: true })
  const texts = answersOf(frames).map(({ text }) => text)
  t.ok(texts[2] === 'inside', 'the page of the conversation, not that of the machine')
  t.notOk(texts.some(text => text.includes(CANARY)))
  t.equal(
    texts.filter(text => /nothing is listening on port/.test(text)).length,
    1,
    'nothing listens on the port of the daemon there',
  )
  t.equal(texts.filter(text => /is not reached from this conversation/.test(text)).length, 2)
})

/** The helper processes and slirp4netns processes that this process started. */
const helpersOf = (pid: number): string[] =>
  readdirSync('/proc')
    .filter(name => Number(name) > 0)
    .flatMap(name => {
      try {
        const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').join(' ')
        const parent = Number(
          readFileSync(`/proc/${name}/stat`, 'utf8')
            .replace(/^.*\) \S+ /s, '')
            .split(' ')[0],
        )
        return parent === pid && /slirp4netns|inside-child/.test(command) ? [`${name} ${command}`] : []
      } catch {
        return []
      }
    })

const until = async (holds: () => boolean, ms = 60_000): Promise<boolean> => {
  for (
    const end = performance.now() + ms;
    performance.now() < end;
    await new Promise(resolve => setTimeout(resolve, 200))
  )
    if (holds()) return true
  return holds()
}

t.test('fifty turns leave no process, no open file and no network', walled(), async t => {
  const { client } = await daemonWith(t, [])
  const open = (what: RegExp) =>
    readdirSync('/proc/self/fd').filter(name => what.test(linkOf(`/proc/self/fd/${name}`))).length
  const turn = (id: string) => shellTurn(client, id, [curl('http://10.255.255.1/', PROXIED)])
  await turn('first')
  await until(() => helpersOf(process.pid).length === 0)
  const [networks, sockets] = [open(/^net:/), open(/^(socket|pipe):/)]
  for (let round = 0; round < 5; round++) await Promise.all(Array.from({ length: 10 }, (_, at) => turn(`c${at}`)))
  t.ok(await until(() => helpersOf(process.pid).length === 0), 'every helper process and slirp4netns has ended')
  t.ok(await until(() => open(/^net:/) <= networks), 'no network is held')
  t.ok(
    await until(() => open(/^(socket|pipe):/) <= sockets + 4),
    `sockets and pipes: ${sockets} before, ${open(/^(socket|pipe):/)} after`,
  )
})

t.test('a filter of the repository runs in the network of the conversation', walled(), async t => {
  const { client, workspace } = await daemonWith(t, [], { files: { '.gitattributes': '*.net filter=tell\n' } })
  inGit(workspace, 'config', 'filter.tell.clean', 'readlink /proc/self/ns/net')
  const [own] = await shellTurn(client, 'c', ['readlink /proc/self/ns/net; echo > a.net'], { isolated: true })
  t.equal(inGit(workspace, 'show', 'agent/c:a.net').trim(), own)
  t.not(own, linkOf('/proc/self/ns/net'))
})

// After the others: the first turn of a process also finds out whether the machine can make networks.
t.test('a turn that starts no program makes no network, although git works in its copy', walled(), async t => {
  const { client, workspace } = await daemonWith(t, [])
  await until(() => helpersOf(process.pid).length === 0)
  await runTurn(client, 'c', 'write a.txt\n| a', { isolated: true })
  t.equal(inGit(workspace, 'show', 'agent/c:a.txt').trim(), 'a')
  t.same(helpersOf(process.pid), [])
})

t.test('a killed daemon leaves no helper process, no slirp4netns and no network', walled(), async t => {
  const folder = folderOf(t)
  const [workspace, data] = [`${folder}/w`, `${folder}/d`]
  makeWorkspace(workspace)
  const daemon = await spawnDaemon(t, { workspace, data })
  await daemon.client.call('POST /agent', { conversationId: 'c', prompt: 'run sleep 600', isolated: true })
  t.ok(await until(() => helpersOf(daemon.pid).length > 0), 'there are helpers')
  const left = helpersOf(daemon.pid).map(line => Number(line.split(' ')[0]))
  await daemon.kill9()
  t.ok(await until(() => !left.some(isAlive), 10_000), 'they end with the daemon')
  const next = await spawnDaemon(t, { workspace, data })
  t.match(await shellTurn(next.client, 'd', ['echo fine']), exactly('fine'))
})

t.test('a turn can open at most 512 connections to the proxy, and other turns are not affected', walled(), async t => {
  const { client } = await daemonWith(t, [])
  const flood =
    `node -e 'let open = 0; for (let n = 0; n < 900; n++) { const s = require("net").connect(18999, `
    + '"127.0.0.1", () => open++).on("close", () => open--).on("error", () => {}); s.write("GET ") } '
    + `setTimeout(() => { console.log(open); process.exit() }, 3000)'`
  const flooding = shellTurn(client, 'flood', [flood])
  t.match(await shellTurn(client, 'other', [curl('http://10.255.255.1/', PROXIED)]), exactly(/is not reached/))
  const [open] = await flooding
  t.ok(Number(open) > 0 && Number(open) <= 512, `${open} stay open`)
})

t.test('killed helper and slirp4netns processes restart for the next command', walled(), async t => {
  const { client } = await daemonWith(t, [])
  const { port } = await serving(t)
  await client.call('POST /agent', {
    conversationId: 'c',
    prompt: [
      'run echo',
      'ask on?',
      '| go: on',
      runs(curl(`http://127.0.0.1:${port}`, DIRECT)),
      runs(curl(`http://127.0.0.1:${port}`, PROXIED)),
    ].join('\n'),
  })
  const watched = framesOf(client, 'c')
  const { requestId } = await watched.until(({ kind }) => kind === 'question')
  for (const line of helpersOf(process.pid)) process.kill(Number(line.split(' ')[0]), 'SIGKILL')
  await allow(client, [`localhost:${port}`])
  await new Promise(resolve => setTimeout(resolve, 1500))
  await client.call('POST /agent/reply', { requestId, kind: 'question', answers: { 'on?': 'go' } })
  const frames = (await watched.all()).map(({ event }) => event)
  t.strictSame(
    answersOf(frames)
      .slice(-2)
      .map(({ text }) => text),
    [CANARY, CANARY],
  )
})

const linkOf = (path: string): string => {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

const isAlive = (pid: number): boolean => {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '')[0] !== 'Z'
  } catch {
    return false
  }
}
