import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { listEnv } from '../../../sdk/node/programs/run.js'
import { homeOfConversation } from '../../../sdk/node/wall/home.js'
import { runWalled, walled, type WallKind, type WallSpec } from '../../../sdk/node/wall/wall.js'
import { copyOf } from '../../support/repositories/copy.js'
import { bytesOf } from '../support.js'

/** The leaks of one form of the wall; both lists are empty if it holds. */
export interface Leaks {
  readonly form: string
  /** The successes that a program inside reported: moved, read, linked, mounted. */
  readonly done: string[]
  /** The changes outside. */
  readonly changed: string[]
}

const CANARY = 'canary-of-the-person'
/** Attempts for every given path; prints the successes. */
const ATTEMPTS = `
const fs = require('node:fs'), { execFileSync } = require('node:child_process')
const say = (...words) => console.log('DONE', ...words)
const tried = (words, path, work) => { try { work(); say(words, path) } catch {} }
const holds = path => fs.statSync(path).size < 10_000 && fs.readFileSync(path, 'utf8').includes('${CANARY}')
const secret = /^(machine.key|sessions.json|authorized_keys)$/
for (const path of process.argv.slice(1)) {
  tried('read', path, () => { if (!holds(path)) throw 0 })
  tried('listed', path, () => { if (!fs.readdirSync(path).some(name => secret.test(name))) throw 0 })
  tried('moved', path, () => { fs.renameSync(path, path + '.moved'); fs.renameSync(path + '.moved', path) })
  tried('taken', path, () => fs.renameSync(path, '/tmp/taken'))
  tried('given another', path, () => {
    fs.mkdirSync('/tmp/given', { recursive: true })
    fs.renameSync('/tmp/given', path)
  })
  tried('removed', path, () => fs.rmdirSync(path))
  tried('deleted', path, () => fs.unlinkSync(path))
  tried('made', path, () => fs.mkdirSync(path))
  tried('made in', path, () => fs.mkdirSync(path + '/new'))
  tried('linked', path, () => fs.linkSync(path, '/tmp/linked'))
  tried('replaced', path, () => fs.symlinkSync('/etc', path))
  tried('written', path, () => fs.closeSync(fs.openSync(path, 'a')))
  tried('opened to others', path, () => fs.chmodSync(path, 0o777))
  tried('taken by size', path, () => fs.truncateSync(path, 1))
}
for (const path of process.argv.slice(-6)) for (const [words, ...command] of [
  ['mounted', 'mount', '--bind', '/tmp', path],
  ['unmounted', 'umount', '-l', path],
  ['remounted', 'mount', '-o', 'remount,bind,rw', path],
  ['mounted in a namespace', 'unshare', '-rm', 'umount', '-l', path],
]) tried(words, path, () => execFileSync(command[0], command.slice(1), { stdio: 'ignore' }))
tried('remounted', '/', () => execFileSync('mount', ['-o', 'remount,rw', '/'], { stdio: 'ignore' }))
const left = /^[/](proc|sys|dev|usr|opt|nix)([/]|$)|node_modules|[/]dist([/]|$)|[.](nvm|rustup|pyenv|cargo)([/]|$)/
const walk = folder => {
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const path = (folder === '/' ? '' : folder) + '/' + entry.name
    if (left.test(path)) continue
    try {
      if (entry.isDirectory()) walk(path)
      else if (entry.isFile() && holds(path)) say('found', path)
    } catch {}
  }
}
walk('/')
`
/** Moves every parent folder of every mount. */
const MOUNTS = `
const fs = require('node:fs'), path = require('node:path')
for (const line of fs.readFileSync('/proc/self/mountinfo', 'utf8').split('\\n')) {
  let at = line.split(' ')[4] ?? '/'
  if (/^[/](proc|sys|dev)([/]|$)/.test(at)) continue
  for (; at !== '/'; at = path.dirname(at)) {
    try { fs.renameSync(at, at + '.moved'); console.log('DONE moved', at); fs.renameSync(at + '.moved', at) } catch {}
  }
}
`

const ancestorsOf = (path: string): string[] => (path === '/' ? [] : [path, ...ancestorsOf(dirname(path))])

const git = (cwd: string, ...args: string[]) =>
  execFileSync('git', args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...listEnv(),
      GIT_AUTHOR_NAME: 'A',
      GIT_AUTHOR_EMAIL: 'a@b.c',
      GIT_COMMITTER_NAME: 'A',
      GIT_COMMITTER_EMAIL: 'a@b.c',
      GIT_CONFIG_GLOBAL: '/dev/null',
    },
  })

const written = (path: string): string => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `${CANARY} ${path}\n`)
  return path
}

/**
 * The usual layout: the person's home folder with the workspace, the daemon's state, files that the person's programs
 * run later, and other daemons.
 */
const layout = async (base: string) => {
  const home = join(base, 'home')
  const state = join(home, '.local/state/sandbox')
  const [workspace, data] = [join(home, 'code/project'), join(state, '0123456789abcdef')]
  const secrets = [
    join(data, 'machine.key'),
    join(data, 'files/sessions.json'),
    join(data, 'journals/runs/1'),
    join(state, 'compiled/x'),
    join(state, 'fedcba9876543210/machine.key'),
    join(base, 'other-data/machine.key'),
    join(base, 'run/login.sock.d/s'),
    join(base, 'program/dist/bundle/kernel/main.js'),
    join(home, '.bashrc'),
    join(home, '.ssh/authorized_keys'),
    join(home, '.gitconfig.secret'),
    join(home, '.config/systemd/user/x.service'),
    join(home, '.config/sandbox.json'),
    join(home, '.local/bin-of-others/x'),
    join(home, 'code/other/file'),
    join(data, 'agent/checkouts/c-2/file'),
    join(data, 'homes/conversations/c-2/home/file'),
  ].map(written)
  mkdirSync(join(workspace, 'src/deep'), { recursive: true })
  mkdirSync(join(workspace, 'docs'))
  for (const file of ['src/deep/a', 'docs/b']) writeFileSync(join(workspace, file), `${file}\n`)
  mkdirSync(join(workspace, '.sandbox/config'), { recursive: true })
  writeFileSync(join(workspace, '.sandbox/config/settings.json'), '{}')
  git(workspace, 'init', '-q', '-b', 'main')
  git(workspace, 'add', 'src', 'docs')
  git(workspace, 'commit', '-qm', 'first')
  const copy = join(data, 'agent/checkouts/c-1')
  const gitdirs = [await copyOf(workspace, copy, join(data, 'agent/git/1'))]
  mkdirSync(join(copy, 'packages/one/node_modules'), { recursive: true })
  mkdirSync(join(workspace, 'packages/one/node_modules'), { recursive: true })
  return { home, workspace, data, copy, gitdirs, secrets }
}

/** Makes all attempts from inside every form of a wall of this kind, in a separate folder. */
export const attempt = async (kind: WallKind, base: string): Promise<Leaks[]> => {
  const { home, workspace, data, copy, gitdirs, secrets } = await layout(base)
  const own = await homeOfConversation(data, 'c-1')
  const plain: WallSpec = {
    workspace,
    data,
    cwd: workspace,
    env: listEnv({ HOME: home }),
    home: own,
    hide: [join(home, '.config/sandbox.json')],
  }
  const isolated = {
    ...plain,
    copy: { dir: copy, gitdirs },
    shown: [{ from: join(workspace, 'packages/one/node_modules'), to: join(workspace, 'packages/one/node_modules') }],
  }
  const forms: { [form: string]: WallSpec } = {
    'the shared tree': plain,
    'a private copy': isolated,
    'git of the engine in a private copy': { ...isolated, ownSandbox: true },
    'a terminal': { ...plain, terminal: true },
    'some folders': {
      ...isolated,
      only: [
        { path: 'src', access: 'work' },
        { path: 'src/deep', access: 'read' },
        { path: 'docs', access: 'read' },
      ],
    },
    'a folder of the workspace is closed': { ...plain, hide: [join(workspace, 'src/deep')] },
    'the deployment shows the home folder': {
      ...plain,
      grants: { read: [join(home, 'code')], write: [join(base, 'shared/space')] },
    },
  }
  mkdirSync(join(base, 'shared/space'), { recursive: true })
  const folders = '(homes/conversations/c-1|caches|wall|agent/checkouts/c-1|agent/git/1)'
  const state = `home/\\.local/state/sandbox/0123456789abcdef/${folders}`
  const skip = new RegExp(`^(home/code/project|${state}|shared/space)(/|$)`)
  // Below /tmp it makes what is not there in its own /tmp; what leads to a mount stays in its place there too.
  const kept = new Set([workspace, own.dir, own.caches].flatMap(ancestorsOf))
  const isOwn = (line: string) => {
    const [, words = '', path = ''] = /^DONE (listed|made|made in|moved|opened to others) (\/tmp\/.*)$/.exec(line) ?? []
    return path !== '' && !(words === 'moved' && kept.has(path))
  }
  const leaks: Leaks[] = []
  for (const [form, spec] of Object.entries(forms)) {
    const visible = (path: string) => form.startsWith('the deployment') && path.startsWith(join(home, 'code/other'))
    const before = bytesOf(base, skip)
    const inSandbox = bytesOf(join(workspace, '.sandbox'))
    const paths = [
      ...new Set([
        ...secrets.filter(path => !visible(path)).flatMap(ancestorsOf),
        ...ancestorsOf(dirname(workspace)),
        ...ancestorsOf(data),
        ...ancestorsOf(process.execPath),
      ]),
    ]
    const run = async (script: string, args: readonly string[]) => {
      const { stdout, stderr, code } = await runWalled(
        spec,
        process.execPath,
        ['-e', script, ...args],
        { timeoutMs: 60_000 },
        kind,
      )
      return code === 0
        ? stdout
            .toString()
            .split('\n')
            .filter(line => line.startsWith('DONE'))
        : [`the attempts ended with ${code}: ${stderr}`]
    }
    const done = [
      ...(await run(MOUNTS, [])),
      ...(await run(
        ATTEMPTS,
        paths.filter(path => path !== '/tmp'),
      )),
    ]
    const after = bytesOf(base, skip)
    const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
      name => before[name] !== after[name],
    )
    if (JSON.stringify(bytesOf(join(workspace, '.sandbox'))) !== JSON.stringify(inSandbox)) changed.push('.sandbox')
    leaks.push({ form, done: done.filter(line => !visible(line.split(' ').at(-1)!) && !isOwn(line)), changed })
  }
  return leaks
}

// As a program it makes the attempts as its own user.
if (process.argv[1]?.endsWith('wall-attempts.js')) {
  const [, , kind = 'bwrap', base = ''] = process.argv
  const probe = { workspace: join(base, 'w'), data: join(base, 'd'), cwd: '/', env: listEnv() }
  for (const folder of [probe.workspace, probe.data]) mkdirSync(folder, { recursive: true })
  const { enforced } = await walled(probe, 'true', [], kind as WallKind)
  console.log(JSON.stringify(enforced ? await attempt(kind as WallKind, join(base, 'place')) : 'none'))
}
