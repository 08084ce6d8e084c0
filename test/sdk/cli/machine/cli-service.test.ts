import { execFileSync, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { managerOf } from '../../../../sdk/cli/daemon/service-manager.js'
import {
  launchdPlist,
  type Service,
  serviceName,
  systemdUnit,
  systemdWord,
} from '../../../../sdk/cli/daemon/service-unit.js'
import { folderOf, makeWorkspace } from '../../../support/daemon.js'
import { going, PATH, sandbox } from '../cli-process.js'
import { programFile } from '../../../../sdk/node/programs/package.js'

/** Characters in a path that are special to a shell, systemd or XML. */
const ODD = 'it\'s 100% "odd" \\ $HOME <&> %n ü'
const service: Service = {
  workspace: `/srv/${ODD}`,
  command: ['/usr/bin/node', '/opt/main.js', `--workspace=/srv/${ODD}`],
  env: { PATH: `/usr/bin:/opt/${ODD}`, XDG_STATE_HOME: '/state' },
}

/** A folder for PATH with a `systemctl` instead of the machine's; without a text there is none. */
const programs = (home: string, name: string, systemctl?: string): string => {
  const folder = join(home, name)
  mkdirSync(folder)
  if (systemctl !== undefined) writeFileSync(join(folder, 'systemctl'), systemctl, { mode: 0o755 })
  return folder
}

t.test('systemd reads a unit as intended', t => {
  t.equal(serviceName('/srv/My Code!'), `sandbox-my-code-${serviceName('/srv/My Code!').slice(-8)}`)
  t.not(serviceName('/srv/code'), serviceName('/home2/code'))
  t.match(
    systemdUnit({ ...service, workspace: '/srv/code' }),
    `[Service]
Type=exec
Environment="PATH=/usr/bin:/opt/it's 100%% \\"odd\\" \\\\ $HOME <&> %%n ü"
Environment="XDG_STATE_HOME=/state"
ExecStart=:"/usr/bin/node" "/opt/main.js" "--workspace=/srv/it's 100%% \\"odd\\" \\\\ $HOME <&> %%n ü"
Restart=on-failure
`,
  )
  t.throws(() => systemdWord('a\nExecStartPre=/bin/true'), /without control characters/)
  t.throws(() => systemdUnit({ ...service, workspace: '/srv/a\nb' }), /without control characters/)
  if (spawnSync('systemd-analyze', ['--version']).error) return t.end()
  const folder = folderOf(t)
  const unit = join(folder, 'sandbox-odd.service')
  const verified = (text: string): string => {
    writeFileSync(unit, text)
    const { stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--user', '--man=no', unit], {
      encoding: 'utf8',
      env: { PATH, HOME: folder, XDG_RUNTIME_DIR: folder },
    })
    return (stdout + stderr)
      .split('\n')
      .filter(line => line.includes('sandbox-odd'))
      .join('\n')
  }
  // The error for a program that it rejects has the name as it was read.
  t.match(verified(`[Service]\nExecStart=:${systemdWord(`/srv/${ODD}`)}\n`), `special characters: /srv/${ODD}\n`)
  const odd = ODD.replace(/["'\\]/g, '')
  for (const name of [ODD, odd]) {
    const node = join(folder, name, 'node')
    mkdirSync(join(folder, name))
    const text = systemdUnit({ ...service, command: [node, ...service.command.slice(1)] })
    if (name === odd) t.match(verified(text), `Command ${node} is not executable`)
    symlinkSync(realpathSync(process.execPath), node)
    t.equal(verified(text), '')
  }
  t.end()
})

t.test('macOS reads a property list as intended', t => {
  const read = `import json,plistlib,sys; json.dump(plistlib.loads(sys.stdin.buffer.read()), sys.stdout)`
  t.same(JSON.parse(execFileSync('python3', ['-c', read], { input: launchdPlist(service), encoding: 'utf8' })), {
    Label: serviceName(service.workspace),
    ProgramArguments: service.command,
    EnvironmentVariables: service.env,
    WorkingDirectory: service.workspace,
    RunAtLoad: true,
    KeepAlive: { SuccessfulExit: false },
    ExitTimeOut: 20,
  })
  t.throws(() => launchdPlist({ ...service, command: ['a\u0000b'] }), /without control characters/)
  t.end()
})

t.test('if the system cannot run services, it is refused with a message, and nothing is written', async t => {
  const home = folderOf(t)
  const workspace = join(home, 'code')
  mkdirSync(workspace)
  t.throws(() => managerOf('freebsd', { env: {}, signal: new AbortController().signal }, ['/usr/bin/node', 'a b']), {
    message:
      "expected Linux with systemd or macOS, found freebsd: have a process manager of your own run /usr/bin/node 'a b'",
  })
  const nobody = programs(home, 'nobody', '#!/bin/sh\necho "Failed to connect to bus: No medium found" >&2\nexit 1\n')
  const empty = programs(home, 'empty')
  for (const [path, why] of [
    [`${nobody}:/bin:/usr/bin`, 'Failed to connect to bus: No medium found'],
    [empty, 'systemctl is not installed'],
  ] as const) {
    for (const what of ['install', 'status', 'remove']) {
      const { code, out, err } = await sandbox(['service', what], { cwd: workspace, env: { HOME: home, PATH: path } })
      t.same([code, out], [1, ''])
      const kernel = programFile('kernel/main.js')
      t.equal(
        err,
        `sandbox: expected a systemd that runs services of this user, found none (${why}): have a process manager `
          + `of your own run ${process.execPath} ${kernel} --workspace=${workspace}\n`,
      )
    }
  }
  t.match(
    JSON.parse(
      (await sandbox(['--json', 'service', 'install'], { cwd: workspace, env: { HOME: home, PATH: empty } })).err,
    ),
    { reason: 'failed' },
  )
  t.same(readdirSync(home), ['code', 'empty', 'nobody'])
})

t.test('options that a service cannot have are refused before the service is created', async t => {
  const home = folderOf(t)
  for (const [args, err] of [
    [['service', 'start'], /expected service status, service install or service remove, found service start/],
    [['service', 'status', '--print'], /--print: expected service install/],
    [['service', 'install', '--port', 'x'], /--port: expected a number from 0 to 65535, found x/],
    [['service', 'install', '--workspace', 'none'], /--workspace: .*none cannot be read \(ENOENT\)/],
    [['service', 'install', '--config', 'none'], /--config: .*none cannot be read \(ENOENT\)/],
    [
      ['service', 'install', '--store', 'postgres://me:hunter2@db/x'],
      /--store: expected an address without a password/,
    ],
  ] as const) {
    const ran = await sandbox(args, { cwd: home, env: { HOME: home } })
    t.same([ran.code, ran.out], [2, ''])
    t.match(ran.err, err)
    t.notMatch(ran.err, 'hunter2')
  }
})

t.test('the service file has the chosen options and variables, and no secret', async t => {
  const home = folderOf(t)
  const workspace = join(home, ODD)
  mkdirSync(workspace)
  writeFileSync(join(workspace, 'config.json'), '{}')
  const env = {
    HOME: home,
    PATH: `${home}/node_modules/.bin:/opt/bin:/usr/bin:/bin`,
    XDG_STATE_HOME: join(home, 'state'),
    SANDBOX_PORT: '0',
    SANDBOX_PUBLIC_URL: 'https://sandbox.example.org',
    SANDBOX_TOKEN: 'hunter2',
    SANDBOX_PASSPHRASE: 'hunter2',
    AWS_SECRET_ACCESS_KEY: 'hunter2',
  }
  const { code, out } = await sandbox(
    ['service', 'install', '--print', '--config', 'config.json', '--data', '../data'],
    { cwd: workspace, env },
  )
  t.equal(code, 0)
  const words = [
    process.execPath,
    programFile('kernel/main.js'),
    `--workspace=${workspace}`,
    `--data=${home}/data`,
    '--port=0',
    '--public-url=https://sandbox.example.org',
    `--config=${workspace}/config.json`,
  ]
  t.match(out, `ExecStart=:${words.map(systemdWord).join(' ')}\n`)
  t.match(out, `Environment="PATH=/opt/bin:/usr/bin:/bin"\nEnvironment="XDG_STATE_HOME=${home}/state"\nExecStart`)
  t.notMatch(out, 'hunter2')
  t.notOk(existsSync(join(home, '.config')), 'nothing was written')
})

/** Imitates systemd: starts the command of a unit with only its environment, and ends it. */
const SYSTEMCTL = `#!/bin/bash
echo "$*" >> "$HOME/asked"
unit=$HOME/.config/systemd/user/\${!#}
stop() {
  [ -e "$HOME/pid" ] && kill "$(cat "$HOME/pid")" && tail --pid="$(cat "$HOME/pid")" -f /dev/null
  rm -f "$HOME/pid"
}
case $3 in
  restart)
    stop
    variables=$(sed -n 's/^Environment=//p' "$unit" | tr '\\n' ' ')
    eval "env -i HOME='$HOME' $variables $(sed -n 's/^ExecStart=://p' "$unit") > '$HOME/log' 2>&1 &"
    echo $! > "$HOME/pid" ;;
  is-active) if [ -e "$HOME/pid" ]; then echo active; else echo inactive; exit 3; fi ;;
  is-enabled) echo enabled ;;
  disable) stop ;;
esac
exit 0
`

t.test('a service is installed, reinstalled, inspected and removed', async t => {
  const home = folderOf(t)
  const workspace = join(home, 'My Code')
  makeWorkspace(workspace)
  const path = `${programs(home, 'bin', SYSTEMCTL)}:${PATH}`
  const run = (args: readonly string[]) =>
    sandbox(args, { cwd: workspace, env: { HOME: home, PATH: path, XDG_STATE_HOME: join(home, 'state') } })
  t.teardown(() => run(['service', 'remove']))
  const name = serviceName(workspace)
  const units = join(home, '.config', 'systemd', 'user')

  t.match(await run(['service', 'status']), {
    code: 1,
    err: `sandbox: no service keeps a daemon on ${workspace}; sandbox service install makes one\n`,
  })
  const installed = await run(['service', 'install', '--port', '0'])
  t.match(installed, {
    code: 0,
    out: new RegExp(`^${name} runs at http://127\\.0\\.0\\.1:\\d+ for ${workspace}\n$`),
    err: 'it stops when you log out; to keep it running: loginctl enable-linger\n',
  })
  t.same(readdirSync(units), [`${name}.service`])
  t.equal(statSync(join(units, `${name}.service`)).mode & 0o777, 0o644)
  t.equal((await run(['agents'])).out, 'no conversations yet; sandbox run "/demo" starts one\n')

  const again = await run(['--json', 'service', 'install', '--port', '0'])
  const { url } = JSON.parse(again.out) as { url: string }
  t.notMatch(installed.out, url, 'another process at another address')
  t.same(JSON.parse((await run(['service', 'status', '--json'])).out), {
    name,
    file: join(units, `${name}.service`),
    workspace,
    active: true,
    enabled: true,
    url,
  })
  t.equal((await run(['service', 'remove'])).out, `removed ${name}; its daemon is stopped, its data stays\n`)
  t.same([readdirSync(units), existsSync(join(home, 'pid'))], [[], false])
  t.equal((await run(['agents'])).code, 3)
  const asked = readFileSync(join(home, 'asked'), 'utf8')
    .split('\n')
    .filter(line => /reload|enable |restart|disable/.test(line))
    .map(line => line.replace('--user --no-pager ', ''))
  const start = ['daemon-reload', `enable ${name}.service`, `restart ${name}.service`]
  t.same(asked, [...start, ...start, `disable --now ${name}.service`, 'daemon-reload'])
})

t.test('a daemon that was started by hand is not replaced', async t => {
  const home = folderOf(t)
  const workspace = join(home, 'code')
  mkdirSync(workspace)
  const env = { HOME: home, PATH: `${programs(home, 'bin', SYSTEMCTL)}:${PATH}`, XDG_STATE_HOME: join(home, 'state') }
  await going(t, ['serve', '--port', '0'], { cwd: workspace, env }).until(/ready at/)
  const { code, err } = await sandbox(['service', 'install'], { cwd: workspace, env })
  t.equal(code, 1)
  t.match(err, /^sandbox: a daemon already runs on .+ at http:.+ \(process \d+\): stop it, then install the service\n$/)
  t.notOk(existsSync(join(home, '.config')))
})
