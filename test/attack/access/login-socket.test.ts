import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { makeWorkspace, root } from '../../support/daemon.js'
import { bytesOf } from '../support.js'

interface User {
  readonly uid: number
  readonly gid: number
}

const SELF: User = { uid: process.getuid!(), gid: process.getgid!() }
const NOBODY: User = { uid: 65534, gid: 65534 }
/** The user who runs the tests, and an ordinary user if that is the superuser. */
const USERS: readonly User[] = SELF.uid === 0 ? [SELF, NOBODY] : [SELF]
const CLI = join(root, 'bundle', 'sdk', 'cli.js')

const LINUX = () => ({ skip: process.platform !== 'linux' && 'only Linux has process namespaces' })

/** A program started as a user, isolated from daemons that run outside the tests. */
const start = (user: User, program: string, args: readonly string[], folder: string): ChildProcess =>
  spawn(program, args, {
    ...user,
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, XDG_RUNTIME_DIR: folder, XDG_STATE_HOME: join(folder, 'state') },
  })

/** A daemon in its own process, with all its files in a folder of the user. */
const daemonOf = async (t: Test, user: User) => {
  t.teardown(() => {})
  const folder = mkdtempSync(join(tmpdir(), 'l-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace, undefined, false)
  mkdirSync(data, { mode: 0o700 })
  for (const path of [folder, workspace, join(workspace, 'README.md'), data]) chownSync(path, user.uid, user.gid)
  const program = join(root, 'bundle', 'kernel', 'main.js')
  const args = [program, '--json', '--port', '0', '--workspace', workspace, '--data', data]
  const child = start(user, process.execPath, args, folder)
  const exited = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await exited
  })
  await once(createInterface(child.stdout!), 'line')
  const { socket, pid } = JSON.parse(readFileSync(join(data, 'daemon.json'), 'utf8')) as { socket: string; pid: number }
  return { folder, data, socket, pid, kept: () => bytesOf(join(data, 'files'), /activity/) }
}

/**
 * Makes all attempts on a login socket: before its greeting, and with the requested name, under the attacker's own
 * process id and under those of others, which it reads from its standard input.
 */
const ATTACK = `
const { createHash } = require('node:crypto'), { connect } = require('node:net'), { writeFileSync } = require('node:fs')
const [socket] = process.argv.slice(1)
const ask = answer => new Promise(done => {
  let text = '', asked = false
  const peer = connect(socket, () => answer || peer.write('{"do":"login"}\\n'))
  peer.setEncoding('utf8').on('error', error => done(error.code))
  peer.on('close', () => done(text.slice(text.indexOf('\\n') + 1))).on('data', piece => {
    text += piece
    if (asked || !answer || !text.includes('\\n')) return
    asked = true
    answer(peer, JSON.parse(text.split('\\n')[0]).prove)
  })
})
console.log('ready')
require('node:readline').createInterface(process.stdin).once('line', async line => {
  const answers = { 'at once': await ask() }
  const ways = { own: process.pid, ...JSON.parse(line), none: undefined, text: '../self', below: -1, all: 2 ** 40 }
  for (const [way, pid] of Object.entries(ways)) for (const what of [{ do: 'login' }, { do: 'session', device: 'x' }]) {
    answers[way + ' ' + what.do] = await ask((peer, prove) => {
      const name = createHash('sha256').update(prove + '\\n' + socket).digest('base64url').slice(0, 15)
      writeFileSync('/proc/self/comm', name)
      peer.write(JSON.stringify({ ...what, pid }) + '\\n')
    })
  }
  console.log(JSON.stringify(answers))
  process.exit()
})`

/** The id of a program in this process namespace, by the last word of its command line. */
const outerPid = (word: string): number => {
  const found = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .find(pid => {
      try {
        const inner = /^NSpid:.*$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![0].split('\t').length > 2
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
        return inner && command[0] === process.execPath && command.at(-2) === word
      } catch {
        return false
      }
    })
  return Number(found)
}

/** Runs the attack, optionally inside a wrapper, and returns the answer to each attempt. */
const attack = async (user: User, wrapper: readonly string[], daemon: Awaited<ReturnType<typeof daemonOf>>) => {
  const word = randomUUID()
  const [program = '', ...args] = [...wrapper, process.execPath, '-e', ATTACK, daemon.socket, word]
  const child = start(user, program, args, daemon.folder)
  const lines = createInterface(child.stdout!)[Symbol.asyncIterator]()
  const errors = text(child.stderr!)
  if ((await lines.next()).value !== 'ready') throw new Error(`the attack did not begin: ${await errors}`)
  const pids = { outer: wrapper.length ? outerPid(word) : undefined, daemon: daemon.pid, test: process.pid, first: 1 }
  child.stdin!.end(`${JSON.stringify(pids)}\n`)
  return { pids, answers: JSON.parse(String((await lines.next()).value)) as { [way: string]: string } }
}

/** Wrappers that put a program into its own process namespace, with the whole file system visible. */
const wallsOf = (user: User): { readonly [name: string]: readonly string[] } => ({
  bubblewrap: ['bwrap', '--dev-bind', '/', '/', '--proc', '/proc', '--unshare-pid'],
  unshare: [
    'unshare',
    ...(user.uid === 0 ? [] : ['--user', '--map-root-user']),
    '--pid',
    '--fork',
    '--mount',
    '--mount-proc',
  ],
})

const starts = (user: User, [program = '', ...args]: readonly string[]): boolean =>
  spawnSync(program, [...args, 'true'], { ...user, cwd: '/' }).status === 0

for (const user of USERS) {
  const who = user.uid === 0 ? 'the superuser' : 'an ordinary user'
  t.test(`the login socket of ${who} refuses programs of another process namespace`, LINUX(), async t => {
    const daemon = await daemonOf(t, user)
    const before = daemon.kept()
    for (const [name, wrapper] of Object.entries(wallsOf(user))) {
      if (!starts(user, wrapper) && !process.env.CI) {
        t.comment(`${name} does not start here`)
        continue
      }
      const { pids, answers } = await attack(user, wrapper, daemon)
      t.ok(pids.outer, `${name}: it has a process id outside`)
      for (const [way, answer] of Object.entries(answers)) {
        t.notMatch(answer, /"code"|"token"/, `${name}, ${way}`)
        t.match(answer, /"message":"expected a program .*"reason":"forbidden"/, `${name}, ${way}`)
      }
      t.match(answers['outer login'], /found one of another namespace/, `${name}: with the right name`)
    }
    t.strictSame(daemon.kept(), before, 'no code was minted')
  })

  t.test(`without a namespace a program of ${who} is answered, also over the command line`, async t => {
    const daemon = await daemonOf(t, user)
    const { answers } = await attack(user, [], daemon)
    t.match(answers['own login'], /"code":"[\w-]{43}"/)
    t.match(answers['own session'], /"token":"sbs_/)
    const good = Object.keys(answers).filter(way => /"code"|"token"/.test(answers[way]!))
    if (process.platform === 'linux') t.same(good, ['own login', 'own session'], 'by no other attempt')
    const runs = [
      [['login'], /\/#login=[\w-]{43}\n$/],
      [['agents'], /^/],
      [['run', 'say hello'], /hello/],
    ] as const
    for (const [args, printed] of runs) {
      const child = start(user, process.execPath, [CLI, ...args, '--data', daemon.data], daemon.folder)
      child.stdin!.end()
      const [out, err, [code]] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, 'exit')])
      t.equal(code, 0, `sandbox ${args.join(' ')}: ${err}`)
      t.match(out, printed)
    }
  })
}

const AS_OTHER = { skip: SELF.uid !== 0 && 'only root can act as another user' }

t.test('the superuser gets no session from the daemon of another user', AS_OTHER, async t => {
  const daemon = await daemonOf(t, NOBODY)
  const { answers } = await attack(SELF, [], daemon)
  t.match(answers['own login'], /expected a program of user 65534, found one of user 0/)
  t.notMatch(JSON.stringify(answers), /\\"code\\"|\\"token\\"/)
})
