import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { folderOf } from '../../support/daemon.js'

/** The address of this network in the one outside, and that of the server there. */
export const NEAR = '192.0.2.1'
export const CHECK = '192.0.2.100'

/** Says who asked, in lines as the public check addresses do, or what a file says instead of it. */
const SERVE = `
const { readFileSync } = require('fs')
const countries = { 198: 'NL', 203: 'DE', 192: 'US' }
require('http').createServer((asked, answer) => {
  const ip = asked.socket.remoteAddress.replace('::ffff:', '')
  let lie = ''
  try { lie = readFileSync(process.argv[1], 'utf8') } catch {}
  if (lie === 'silent') return asked.socket.destroy()
  if (asked.url === '/bytes') {
    answer.writeHead(200, { 'content-length': 64 << 20 })
    let left = 64
    const piece = Buffer.alloc(1 << 20)
    const more = () => { while (left-- > 0) if (!answer.write(piece)) return answer.once('drain', more); answer.end() }
    return more()
  }
  answer.end('ip=' + ip + '\\nloc=' + (lie || countries[ip.split('.')[0]] || 'XX') + '\\n')
}).listen(80, '0.0.0.0', () => console.log('up'))`

/** A network at the other end of a pair of interfaces, with the server that says who asked it. */
export class Outside {
  readonly checks = [`http://${CHECK}/`]
  readonly pid: string
  readonly #lie: string
  readonly #children: ChildProcess[] = []

  private constructor(pid: string, lie: string) {
    this.pid = pid
    this.#lie = lie
  }

  /** @param own Networks of this side, which the other one answers to. */
  static async start(t: Test, own: readonly string[] = []): Promise<Outside> {
    const holder = spawn('unshare', ['--net', 'sh', '-c', 'echo there && exec sleep 3600'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(holder.stdout!, 'data')
    const outside = new Outside(String(holder.pid), join(folderOf(t), 'lie'))
    t.teardown(() => {
      for (const child of [...outside.#children, holder]) child.kill('SIGKILL')
    })
    const ip = (...args: string[]) => execFileSync('ip', args, { encoding: 'utf8' })
    ip('link', 'add', 'near0', 'type', 'veth', 'peer', 'name', 'far0', 'netns', outside.pid)
    ip('addr', 'add', `${NEAR}/24`, 'dev', 'near0')
    ip('link', 'set', 'near0', 'up')
    outside.run('ip', 'addr', 'add', `${CHECK}/24`, 'dev', 'far0')
    for (const link of ['lo', 'far0']) outside.run('ip', 'link', 'set', link, 'up')
    for (const network of own) outside.run('ip', 'route', 'add', network, 'via', NEAR)
    await once(outside.begin(process.execPath, '-e', SERVE, outside.#lie).stdout!, 'data')
    return outside
  }

  /** Runs a program there. */
  run(program: string, ...args: string[]): string {
    return execFileSync('nsenter', [`--net=/proc/${this.pid}/ns/net`, program, ...args], { encoding: 'utf8' })
  }

  begin(program: string, ...args: string[]): ChildProcess {
    const child = spawn('nsenter', [`--net=/proc/${this.pid}/ns/net`, program, ...args], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    this.#children.push(child)
    return child
  }

  /** From here on the server says this country, or nothing; undefined: the truth. */
  lie(said: string | undefined): void {
    if (said === undefined) rmSync(this.#lie, { force: true })
    else writeFileSync(this.#lie, said)
  }
}
