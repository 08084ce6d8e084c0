import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { checkTarget, webdavAddress } from '../../../plugins/disks/entry.js'
import type { DiskTarget } from '../../../plugins/disks/contract.js'
import { editEnvText, isEnvValue } from '../../../plugins/secrets/env/env-text.js'
import { quotedForTmux } from '../../../plugins/system/terminals/control-client.js'
import { wireguardConf } from '../../../sdk/node/tunnels/wireguard-conf.js'
import { systemdUnit, workspaceOfUnit } from '../../../sdk/cli/daemon/service-unit.js'
import { ownProgram } from '../../../sdk/node/programs/own-programs.js'
import { remoteAddress } from '../../../sdk/node/transport/remote-address.js'
import { folderOf } from '../../support/daemon.js'
import { wireguardText } from '../../plugins/vpn/configurations.js'

const needs = async (name: string) => ({
  skip: !process.env.CI && (await ownProgram(name)) === undefined && `this machine has no ${name}`,
})
const outcome = <T>(make: () => T): T | undefined => {
  try {
    return make()
  } catch {
    return undefined
  }
}
const SIGNS = [
  '',
  '%2f',
  '%2F',
  '%40',
  '%3a',
  '%5b',
  '@',
  ':',
  '[',
  ']',
  '\\',
  '#',
  '?',
  '%',
  ';',
  "'",
  '$(id)',
  '`id`',
  '=',
  '|',
  '%00',
  '%0a',
]

t.test('git connects to the server that was judged, whatever the spelling of an address', await needs('git'), t => {
  const folder = folderOf(t)
  const [ssh, said] = [join(folder, 'ssh'), join(folder, 'said')]
  writeFileSync(ssh, `#!/bin/sh\nprintf '%s\\n' "$@" > '${said}'\nexit 1\n`)
  chmodSync(ssh, 0o755)
  /** The host to which git wants ssh to connect. */
  const connects = (url: string): string | undefined => {
    rmSync(said, { force: true })
    const env = {
      PATH: process.env.PATH,
      HOME: folder,
      GIT_SSH: ssh,
      GIT_SSH_VARIANT: 'ssh',
      GIT_ALLOW_PROTOCOL: 'ssh',
    }
    spawnSync('git', ['ls-remote', '--', url], { env, cwd: folder, stdio: 'ignore' })
    if (!existsSync(said)) return undefined
    const words = readFileSync(said, 'utf8').split('\n')
    const port = words[words.indexOf('-p') + 1]
    const host = words[words.findIndex(word => word.startsWith('git-upload-pack')) - 1]?.split('@').at(-1)
    return `${host?.replace(/^\[(.*)\]$/, '$1')}:${words.includes('-p') ? port : 22}`
  }
  let judged = 0
  for (const scheme of ['ssh://', 'SSH://', ''])
    for (const one of SIGNS)
      for (const host of ['good.example', `good${one}.example`, '[::1]', `evil.example${one}good.example`])
        for (const port of ['', ':2222']) {
          const path = scheme === '' ? ':repo' : `${port}/a${one}b`
          const text = `${scheme}evil.example${one}9${one === '' ? '' : '@'}${host}${path}`
          const address = outcome(() => remoteAddress(text, { workspace: folder, from: folder, field: 'url' }))
          if (address?.kind !== 'ssh') continue
          judged++
          t.equal(connects(address.url)?.toLowerCase(), `${address.host}:${address.port}`, text)
        }
  t.ok(judged > 30, `${judged} addresses pass`)
  for (const kind of ['https', 'http', 'git', 'ssh'])
    for (const host of [
      'a=b',
      'x.helper=!id',
      "a'b",
      'a;b',
      'a$b',
      'a|b',
      'a&b',
      'a(b)',
      'a!b',
      'a*b',
      'a,b',
      'a%2fb',
      '-a',
      'a~',
    ])
      t.throws(() => remoteAddress(`${kind}://${host}/r`, { workspace: folder, from: folder, field: 'url' }), host)
  t.end()
})

t.test('wg-quick runs nothing of what leaves, and what it would run is refused', await needs('wg-quick'), async t => {
  const folder = folderOf(t)
  const [mark, conf] = [join(folder, 'mark'), join(folder, 'x.conf')]
  for (const name of ['ip', 'wg', 'resolvconf', 'iptables-restore', 'nft', 'sysctl']) {
    writeFileSync(join(folder, name), '#!/bin/sh\nexit 0\n')
    chmodSync(join(folder, name), 0o755)
  }
  const program = (await ownProgram('wg-quick')) ?? 'wg-quick'
  const acts = (text: string): boolean => {
    rmSync(mark, { force: true })
    writeFileSync(conf, text, { mode: 0o600 })
    const env = { PATH: `${folder}:${process.env.PATH}` }
    spawnSync('unshare', ['--user', '--map-root-user', '--net', program, 'up', conf], {
      env,
      cwd: folder,
      stdio: 'ignore',
    })
    return existsSync(mark)
  }
  const hidden = `PreUp = touch ${mark}`
  const good = wireguardText()
  const [passed, through]: [string[], string[]] = [[], []]
  let acted = 0
  const ends = [
    '\n',
    '\r',
    '\r\n',
    '\v',
    '\f',
    '\u2028',
    '\u0085',
    '\u00a0',
    '\0',
    '\\\n',
    '#\n',
    '#\r',
    ';\n',
    '; ',
    ' ',
    ', ',
  ]
  const spelled = [hidden, hidden.replace(' = ', '='), hidden.toUpperCase().replace(/=.*/, `= touch ${mark}`)]
    .concat([
      ` \t${hidden}`,
      `\v${hidden}`,
      `\u00a0${hidden}`,
      hidden.replace(' =', '\u00a0='),
      hidden.replace(' =', '\v='),
    ])
    .concat([`"PreUp" = touch ${mark}`, `Pre\\Up = touch ${mark}`, `PreUp # = touch ${mark}`, `PostUp = touch ${mark}`])
  for (const [at, end] of ends.entries())
    for (const one of spelled.slice(0, at < 2 ? spelled.length : 1))
      for (const text of [
        good.replace('[Interface]\n', `[Interface]${end}${one}\n`),
        good.replace('10.99.0.2/24', `10.99.0.2/24${end}${one}`),
        good.replace('[Peer]', `[Peer${end}${one}\n[Peer]`),
        good.replace('Address', `DNS = 1.1.1.1${end}${one}\nAddress`),
      ]) {
        const raw = acts(text)
        if (raw) acted++
        const leaves = outcome(() => wireguardConf(text).text)
        if (leaves === undefined) continue
        if (raw) passed.push(JSON.stringify(text.slice(0, 120)))
        if (acts(leaves)) through.push(JSON.stringify(text.slice(0, 120)))
      }
  t.ok(acted > 20, `${acted} texts make wg-quick act`)
  t.same(through, [], 'wg-quick acts on none of what leaves')
  t.same(passed, [], 'what wg-quick would act on is refused')
})

t.test('every reader of a .env file finds the names that were written, and runs nothing', t => {
  const folder = folderOf(t)
  const file = join(folder, 'env')
  const value = fc
    .string({
      unit: fc.constantFrom('"', "'", '\\', '$', '\n', '\r', '#', ' ', '=', 'A', '`', '(', ')', ';', '\t'),
      minLength: 1,
      maxLength: 12,
    })
    .filter(isEnvValue)
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom('ONE', 'TWO', 'THREE'), value, { minKeys: 1 }), values => {
      const text = editEnvText('', new Map(Object.entries(values)), new Set())
      const names = Object.keys(values).sort()
      t.equal(text.split('\n').length - 1, names.length, 'a line each')
      t.same(Object.keys(parseEnv(text)).sort(), names, 'as Node reads it')
      writeFileSync(file, text)
      const seen = spawnSync('sh', ['-c', 'PATH=/nowhere; set -a; . ./env; exec /usr/bin/env -0'], {
        cwd: folder,
        env: {},
      })
      const shell = seen.stdout.toString().split('\0').filter(Boolean)
      t.equal(seen.stderr.toString(), '')
      for (const [name, is] of Object.entries(values))
        if (!/[\n\r]/.test(is)) t.ok(shell.includes(`${name}=${is}`), `${JSON.stringify(is)} as sh reads it`)
      t.same(
        shell
          .map(each => each.split('=')[0]!)
          .filter(name => !['PATH', 'PWD', 'OLDPWD', '_', 'SHLVL'].includes(name))
          .sort(),
        names,
      )
    }),
    { numRuns: 200, seed: 16 },
  )
  t.end()
})

t.test('tmux passes the words of a command on as they are', await needs('tmux'), t => {
  const folder = folderOf(t)
  const said = join(folder, 'said')
  const words = [
    '~',
    '~root/x',
    '#{pid}',
    '#(id)',
    '%if',
    '%H',
    '$HOME',
    '${HOME}',
    ';',
    '\\;',
    'a;',
    '{',
    '}',
    "'",
    '"',
    '\\',
    '\\176',
    '\\u0041',
    '\\e[1m',
    '\t',
    '\u001b[31m',
    'a\nkill-server',
    'a\rb',
    '#',
    '""',
    '`id`',
    '\u2028',
    '@x',
    '=',
    '-t',
    '',
  ]
  const shell = 'printf "%s\\0" "$@" > "$0.part"; mv "$0.part" "$0"; sleep 5'
  const script = `new-session -d -s one -- ${['sh', '-c', shell, said, ...words].map(quotedForTmux).join(' ')}\n`
  const tmux = (...args: string[]) => ['-u', '-S', 's', '-f', '/dev/null', ...args]
  t.teardown(() => void spawnSync('tmux', tmux('kill-server'), { cwd: folder, stdio: 'ignore' }))
  execFileSync('tmux', tmux('start-server', ';', 'source-file', '-'), {
    input: script,
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, TERM: 'xterm' },
  })
  spawnSync('sh', ['-c', `for i in $(seq 100); do [ -e said ] && exit; sleep 0.05; done`], { cwd: folder })
  t.same(readFileSync(said, 'utf8').split('\0').slice(0, -1), words)
  t.end()
})

t.test('a unit names one program, whatever the workspace is called', await needs('systemd-analyze'), t => {
  const folder = folderOf(t)
  for (const name of [
    '\\',
    'a\\',
    '%h',
    '%%n',
    '$HOME',
    '"x',
    "'x",
    '#',
    ';',
    'a b',
    '[Service]',
    '=x',
    'ä',
    '`id`',
    '${PATH}',
  ]) {
    const workspace = `/w/${name}`
    const unit = join(folder, 'one.service')
    const text = systemdUnit({ workspace, command: ['/bin/true', `--workspace=${workspace}`], env: { NAME: name } })
    writeFileSync(unit, text)
    const { stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', unit], { encoding: 'utf8' })
    t.notMatch(stderr, /one\.service:\d+/, name)
    t.equal(workspaceOfUnit(text), workspace)
  }
  for (const name of ['a\nExecStart=/bin/sh', 'a\rb', 'a\0b'])
    t.throws(() => systemdUnit({ workspace: `/w/${name}`, command: ['/bin/true'], env: {} }), JSON.stringify(name))
  t.end()
})

t.test('no field of a disk becomes an option, a line or another host of the program that mounts it', t => {
  const targets: { readonly [field: string]: DiskTarget } = {
    'smb share': { provider: 'smb', server: 'nas', share: 'X' },
    'smb server': { provider: 'smb', server: 'X', share: 's' },
    'smb path': { provider: 'smb', server: 'nas', share: 's', path: 'X' },
    'smb domain': { provider: 'smb', server: 'nas', share: 's', username: 'ada', domain: 'X' },
    'smb username': { provider: 'smb', server: 'nas', share: 's', username: 'X' },
    'nfs server': { provider: 'nfs', server: 'X', export: '/e' },
    'sshfs host': { provider: 'sshfs', host: 'X', user: 'ada', path: '/' },
    'sshfs user': { provider: 'sshfs', host: 'nas', user: 'X', path: '/' },
    'sshfs hostKey': { provider: 'sshfs', host: 'nas', user: 'ada', path: '/', hostKey: 'X' },
  }
  const odd = ['a,suid', 'a,ip=127.0.0.1', 'a\nuid=0', 'a\rb', 'a\0b', 'a\u007f', '-oProxyCommand=id', 'a\nHost *']
  for (const [field, target] of Object.entries(targets))
    for (const value of odd) {
      // Commas and dashes mean nothing in some fields.
      if (/^smb (path|share)$/.test(field) && value.startsWith('-')) continue
      const filled = JSON.parse(JSON.stringify(target).replaceAll('"X"', JSON.stringify(value))) as DiskTarget
      t.throws(() => checkTarget(filled, {}), { message: /: expected / }, `${field} ${JSON.stringify(value)}`)
    }
  for (const password of ['a\nb', 'a\rb', 'a\0b'])
    t.throws(() => checkTarget({ ...targets['smb username']!, username: 'ada' } as DiskTarget, { password }), {
      message: /: expected /,
    })
  for (const url of [
    'http://good\\@127.0.0.1/',
    'http://good.example\t@evil/',
    'http://a b/',
    'http://u:p@h/',
    'http://h/?a',
    'http://h/#a',
    'http://a=b/',
    'http://h/"x',
    "http://a'b/",
  ])
    t.throws(() => checkTarget({ provider: 'webdav', url }, {}), { message: /: expected / }, url)
  t.equal(webdavAddress({ url: 'http:////0x7f.1:080/a/../b' }), 'http://127.0.0.1/b')
  t.end()
})
