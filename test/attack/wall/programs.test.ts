import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import t, { type Test } from 'tap'
import { findChromium } from '../../../plugins/system/browsers/chromium.js'
import type { Client } from '../../../sdk/client.js'
import { attach } from '../../plugins/system/terminals/terminals-support.js'
import { act } from '../../support/browser/browser.js'
import { endTerminals, folderOf, inGit, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'
import { answersOf, shellTurn, walled } from '../support.js'

/** Programs that the daemon starts itself, and those they start. */
const OWN = [
  'tmux',
  'git',
  'bwrap',
  'unshare',
  'setpriv',
  'chromium',
  'chromium-browser',
  'google-chrome',
  'sh',
  'bash',
  'dash',
  'env',
  'sleep',
  'cat',
  'mkfifo',
  'rm',
  'sync',
  'ps',
  'mount',
  'umount',
  'mkdir',
  'setsid',
  'pivot_root',
  'nsenter',
  'prlimit',
  'ip',
  'slirp4netns',
  'true',
  'ln',
]
/** Programs that build or control a wall: even inside one they must come from the system. */
const RULING = /\.(?:tmux|git|env|bwrap|unshare|setpriv|chromium|chromium-browser|google-chrome)$/
const SUPERUSER = process.getuid?.() === 0

/**
 * A sandbox whose PATH begins with every kind of folder that a turn can or could write, full of programs that leave a
 * mark.
 */
const planted = async (t: Test, starter: readonly string[] = []) => {
  const folder = folderOf(t)
  const [workspace, data, home] = ['workspace', 'data', 'home'].map(name => join(folder, name)) as [
    string,
    string,
    string,
  ]
  makeWorkspace(workspace, { 'README.md': '# work\n', '.gitignore': '/bin/\n/node_modules/\n/mark.*\n' })
  const temporary = mkdtempSync(join(tmpdir(), 'planted-'))
  t.teardown(() => rmSync(temporary, { recursive: true, force: true }))
  t.teardown(() => endTerminals(data))
  const places = {
    home: join(home, '.local/bin'),
    workspace: join(workspace, 'bin'),
    packages: join(workspace, 'node_modules/.bin'),
    data: join(data, 'bin'),
    temporary,
    open: join(folder, 'open'),
    group: join(folder, 'group'),
    sticky: join(folder, 'sticky'),
    stranger: join(folder, 'stranger'),
    below: join(folder, 'open-above/bin'),
    programs: join(folder, 'programs'),
  }
  const marks = join(data, 'tripped')
  mkdirSync(marks, { recursive: true, mode: 0o700 })
  for (const [place, path] of Object.entries(places)) {
    mkdirSync(path, { recursive: true, mode: 0o755 })
    for (const name of OWN)
      writeFileSync(join(path, name), script(marks, workspace, `${place}.${name}`, name), { mode: 0o755 })
  }
  for (const open of [places.open, temporary]) chmodSync(open, 0o777)
  chmodSync(places.group, 0o775)
  chmodSync(places.sticky, 0o1777)
  chmodSync(join(folder, 'open-above'), 0o777)
  for (const name of OWN) chmodSync(join(places.programs, name), 0o777)
  if (SUPERUSER) chownSync(places.stranger, 12_345, 12_345)
  else chmodSync(places.stranger, 0o757)
  const linked = join(folder, 'linked')
  symlinkSync(places.home, linked)
  const links = join(folder, 'links')
  mkdirSync(links)
  for (const name of OWN) symlinkSync(join(places.home, name), join(links, name))
  const PATH = [linked, links, ...Object.values(places), '.', 'bin', process.env.PATH].join(':')
  const daemon = await spawnDaemon(t, {
    workspace,
    data,
    starter,
    env: { PATH, HOME: home, SHELL: '/bin/bash', SANDBOX_CHROMIUM: '' },
  })
  const left = () => [
    ...readdirSync(marks),
    ...readdirSync(folder, { recursive: true })
      .map(path => basename(String(path)))
      .filter(name => /^mark\./.test(name) && RULING.test(name)),
  ]
  return { ...daemon, home, marks, left, places }
}

/** Waits for a condition, and checks it at every change event of the daemon. */
const heard = async (client: Client, isSo: () => Promise<boolean>): Promise<void> => {
  for await (const _ of await client.call('GET /events', {})) if (await isSo()) return
}

/**
 * Leaves a mark that only a program outside every wall can leave, and one in the workspace, then runs the program of
 * its name.
 */
const script = (marks: string, workspace: string, mark: string, name: string): string => `#!/bin/sh
/usr/bin/touch ${join(marks, mark)} ${join(workspace, `mark.${mark}`)} 2>/dev/null
for folder in /usr/bin /usr/sbin /bin /sbin; do [ -x $folder/${name} ] && exec $folder/${name} "$@"; done
exit 127
`

t.test(
  'no program planted in a folder of the PATH runs outside a wall, builds one, or is used as git in one',
  walled(),
  async t => {
    const daemon = await planted(t)
    const { client, left, marks } = daemon
    writeFileSync(join(marks, 'probe'), '')
    t.same(left(), ['probe'], 'a mark is seen')
    rmSync(join(marks, 'probe'))
    await shellTurn(client, 'alone', ['echo a > a.txt'], { isolated: true })
    await shellTurn(client, 'shared', ['sleep 0'])
    await client.call('GET /agents/{id}/diff', { id: 'alone' })
    t.match(await client.call('POST /agents/{id}/land', { id: 'alone' }), { landed: true })
    await runTurn(client, 'gone', 'write b.txt\n| b', { isolated: true })
    await client.call('POST /agents/{id}/discard', { id: 'gone' })
    await client.call('GET /system/usage', {})
    await client.call('POST /system/terminals', { name: 'web-a' })
    const one = await attach(t, daemon, 'web-a')
    one.type('echo do-"ne"; exit 3\r')
    t.equal(await one.exit(), 3)
    await client.call('GET /system/terminals/{name}/scrollback', { name: 'web-a' })
    await client.call('DELETE /system/terminals/{name}', { name: 'web-a' })
    if ((await findChromium()) !== undefined) await act(daemon, 'open', { url: 'about:blank' })
    await client.call('POST /bundles', {})
    await heard(client, async () =>
      (await client.call('GET /bundles')).exports.every(({ state }) => state !== 'packing'),
    )
    t.same(left(), [])
    t.equal(await daemon.terminate(), 0)
    t.same(left(), [])
  },
)

t.test(
  'a program that exists only in folders that turns can write counts as missing, and the refusal says so',
  walled(),
  async t => {
    const cover =
      'for p in /usr/bin/tmux /usr/bin/bwrap /usr/bin/chromium /usr/lib/chromium/chromium; do [ ! -e $p ] || '
      + '/bin/mount --bind /dev/null $p; done; exec "$@"'
    const daemon = await planted(t, [
      '/usr/bin/unshare',
      '--mount',
      ...(SUPERUSER ? [] : ['--user', '--map-root-user']),
      '--',
      '/bin/sh',
      '-c',
      cover,
      'sh',
    ])
    const { client, left, places } = daemon
    await heard(client, async () => (await client.call('GET /info')).boot.ready)
    const { programs } = await client.call('GET /info')
    for (const name of ['tmux', 'bwrap', 'chromium'])
      t.match(
        programs.find(program => program.name === name),
        { present: false },
        name,
      )
    await t.rejects(act(daemon, 'open', { url: 'about:blank' }), {
      reason: 'missing-program',
      message: new RegExp(
        String.raw`^expected the program chromium and found \S+/chromium, where turns can write: `
          + String.raw`install it \(Debian: apt-get install chromium\)$`,
      ),
    })
    t.ok(existsSync(join(places.home, 'chromium')))
    await client.call('POST /system/terminals', { name: 'web-a' })
    const frames = await runTurn(client, 'alone', 'run echo walled', { isolated: true })
    t.match(
      answersOf(frames),
      exactly({ ok: true, text: 'walled' }),
      `unshare builds the wall: ${JSON.stringify(frames)}`,
    )
    t.same(left(), [])
  },
)

t.test('git and the shell of a turn come from the system although the tree has others', walled(), async t => {
  const { client, workspace, left } = await planted(t)
  const [git, shell, path] = await shellTurn(client, 'shared', [
    'command -v git',
    'readlink -f /proc/$$/exe',
    'echo "$PATH"',
  ])
  t.match(shell, /^\/usr\/bin\//)
  t.notMatch(path, workspace)
  t.notMatch(path, /planted-/)
  t.ok(git)
  inGit(workspace, 'status')
  t.same(left(), [])
})
