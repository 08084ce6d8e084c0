import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { sshKey } from '../ssh-server.js'

const NEEDED = ['podman', 'podman-compose', 'conmon', 'crun', 'busybox', 'ip', 'nsenter', 'unshare', 'sshd', 'flock']
const FOLDERS = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin']
const missing = NEEDED.filter(name => FOLDERS.every(folder => !existsSync(`${folder}/${name}`)))

/** The options of a test that deploys: skipped where its programs are missing or it is no superuser, but not in CI. */
export const withTarget = (): { skip?: string } =>
  (missing.length > 0 || process.getuid?.() !== 0) && !process.env.CI
    ? {
        skip:
          `needs the superuser, and lacks ${missing.join(', ') || 'nothing'} `
          + '(Debian: apt-get install podman podman-compose crun busybox-static openssh-server iproute2)',
      }
    : {}

/** A machine to deploy to: a real ssh server with podman, in a network and a mount namespace of its own. */
export interface DeployTarget {
  readonly address: string
  readonly port: number
  readonly hostKey: string
  /** The private key that it lets in. */
  readonly key: string
  /** Where what is deployed lies. */
  readonly home: string
  /** Lets nothing be started or ended there, until it is let go. */
  hold(): () => void
  /** Runs a command there and answers its output. */
  run(command: string): string
  /** What an app there answers. */
  get(port: number): Promise<string>
}

const CONTAINERS = `[containers]
cgroups = "disabled"
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
log_driver = "k8s-file"
[engine]
runtime = "crun"
cgroup_manager = "cgroupfs"
events_logger = "file"
`
// Hides the cgroups of the machine, in which containers may not be allowed.
const BEGIN = 'mount -t tmpfs tmpfs /sys/fs/cgroup; ip link set lo up; exec /usr/sbin/sshd -D -e -f "$1"'
/** Waits while the machine is held. */
const HOLDS = '#!/bin/sh\nwhile [ -e "$HOME/hold" ]; do sleep 0.1; done\n'
let count = 0

/** Starts it. */
export const deployTarget = async (t: Pick<Test, 'teardown'>): Promise<DeployTarget> => {
  // Its paths must be short, and no other file system may lie below the stores of containers.
  const folder = mkdtempSync('/var/tmp/sandbox-target-')
  const at = (name: string) => join(folder, name)
  for (const name of ['home', 'store', 'run', 'bin']) mkdirSync(at(name))
  const compose = execFileSync('sh', ['-c', 'command -v podman-compose'], { encoding: 'utf8' }).trim()
  writeFileSync(at('bin/podman-compose'), `${HOLDS}exec ${compose} "$@"\n`, { mode: 0o755 })
  const [hostKey, key] = [sshKey(folder, 'host'), sshKey(folder, 'key')]
  writeFileSync(at('authorized'), `${key.public}\n`)
  writeFileSync(at('containers.conf'), CONTAINERS)
  writeFileSync(
    at('storage.conf'),
    `[storage]\ndriver = "vfs"\ngraphroot = "${at('store')}"\nrunroot = "${at('run')}"\n`,
  )
  const env = {
    HOME: at('home'),
    CONTAINERS_CONF: at('containers.conf'),
    CONTAINERS_STORAGE_CONF: at('storage.conf'),
    PATH: `${at('bin')}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
  }
  mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })
  const port = 2222
  const config = [
    `Port ${port}`,
    `HostKey ${at('host')}`,
    `AuthorizedKeysFile ${at('authorized')}`,
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'UsePAM no',
    'StrictModes no',
    'PermitRootLogin prohibit-password',
    'PidFile none',
    `SetEnv ${Object.entries(env)
      .map(([name, value]) => `${name}=${value}`)
      .join(' ')}`,
  ]
  writeFileSync(at('sshd_config'), `${config.join('\n')}\n`)
  const server = spawn('unshare', ['-n', '-m', 'sh', '-c', BEGIN, 'sh', at('sshd_config')], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  server.stderr.on('data', piece => (said += String(piece)))
  const pid = String(server.pid)
  const inside = (command: string) =>
    execFileSync('nsenter', ['-t', pid, '-n', '-m', 'sh', '-c', command], { env, encoding: 'utf8', cwd: '/' })
  t.teardown(async () => {
    try {
      inside('podman rm -fa > /dev/null 2>&1; podman network prune -f > /dev/null 2>&1')
    } finally {
      const gone = once(server, 'exit')
      server.kill()
      await gone
      rmSync(folder, { recursive: true, force: true })
    }
  })
  while (!said.includes('listening')) {
    if (server.exitCode !== null) throw new Error(`sshd ended: ${said}`)
    await delay(20)
  }
  const number = (process.pid * 7 + ++count) % 16_000
  const net = `10.231.${number >> 6}.${(number & 63) * 4}`
  const [ours, address] = [1, 2].map(host => net.replace(/\d+$/, last => String(Number(last) + host)))
  const name = `sbt${pid}`
  const ip = (...args: string[]) => execFileSync('ip', args)
  ip('link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', pid)
  ip('addr', 'add', `${ours}/30`, 'dev', name)
  ip('link', 'set', name, 'up')
  inside(`ip addr add ${address}/30 dev eth0 && ip link set eth0 up`)
  return {
    address: address!,
    port,
    hostKey: hostKey.public.split(' ').slice(0, 2).join(' '),
    key: key.private,
    home: at('home'),
    hold: () => {
      writeFileSync(at('home/hold'), '')
      return () => rmSync(at('home/hold'))
    },
    run: inside,
    get: async at => (await fetch(`http://${address}:${at}/`, { signal: AbortSignal.timeout(5000) })).text(),
  }
}

/** Makes the source of an app that answers every request with a page, of nothing but a static program. */
export const pageApp = (folder: string, page: string): void => {
  mkdirSync(folder, { recursive: true })
  copyFileSync(execFileSync('sh', ['-c', 'command -v busybox'], { encoding: 'utf8' }).trim(), join(folder, 'busybox'))
  writeFileSync(join(folder, 'index.html'), page)
  const lines = [
    'FROM scratch',
    'COPY busybox /bin/busybox',
    'COPY busybox /bin/sh',
    'COPY index.html /www/index.html',
    'ENV PATH=/bin',
    // The first process of a container takes no other signal.
    'STOPSIGNAL SIGKILL',
    'CMD ["/bin/busybox", "httpd", "-f", "-p", "8080", "-h", "/www"]',
  ]
  writeFileSync(join(folder, 'Containerfile'), `${lines.join('\n')}\n`)
}

/** Whether a process runs, as the system says. */
export const commandLineOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
  } catch {
    return ''
  }
}
