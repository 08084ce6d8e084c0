import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { lstat, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { DeployHost } from '../../node/deploy/desired.js'
import { ignored } from '../../ignored.js'
import { needProgram, ownEnv } from '../../node/programs/run.js'
import { nameOfServer, quotedForSsh, sshSettings } from '../../node/transport/ssh-login.js'

/** A machine could not be reached, or a command there failed; the message is in their own words. */
export class MachineFailure extends Error {}

/** A command on a machine: a script of ours, and arguments for it. */
export interface MachineCommand {
  readonly script: string
  readonly args: readonly string[]
  /** What the script reads. */
  readonly input?: AsyncIterable<Buffer>
  /** Takes each line of its output. */
  readonly line?: (line: string) => Promise<void>
}

const MOST_WORDS = 2000
const MOST_OUTPUT = 4 * 1024 * 1024
/** How long an agent of keys may take to listen. */
const AGENT_MS = 5000

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

/** Where programs in Python say that they are when they fail, which says nothing to people. */
const TRACE =
  /^(?:Traceback \(most recent|File ".*", line \d|return |raise |self\.|[~^]+$|During handling|subprocess\.)/

/** The end of what a program said of its failure, on one line. */
const wordsOf = (text: string): string =>
  text
    .slice(-MOST_WORDS)
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '' && !TRACE.test(line))
    .slice(-5)
    .join('; ')

/** A machine over ssh: only its own host key is accepted, and the private key stays in the memory of an agent. */
export class RemoteMachine implements AsyncDisposable {
  readonly #host: DeployHost
  readonly #folder: string
  readonly #agent: ChildProcess
  readonly #signal: AbortSignal

  private constructor(host: DeployHost, folder: string, agent: ChildProcess, signal: AbortSignal) {
    this.#host = host
    this.#folder = folder
    this.#agent = agent
    this.#signal = signal
  }

  /** Makes ready to talk to a machine, which is not asked yet. */
  static async open(host: DeployHost, key: string, signal: AbortSignal): Promise<RemoteMachine> {
    const folder = await mkdtemp(join(tmpdir(), 'sandbox-deploy-'))
    const socket = join(folder, 'agent')
    // In the process group of this program: it ends with the group.
    const agent = spawn(await needProgram('ssh-agent'), ['-D', '-a', socket], {
      env: { ...(await ownEnv()) },
      stdio: 'ignore',
    })
    agent.on('error', ignored('the wait for its socket says so'))
    const machine = new RemoteMachine(host, folder, agent, signal)
    try {
      await machine.#prepare(socket, key)
      return machine
    } catch (error) {
      await machine[Symbol.asyncDispose]()
      throw error
    }
  }

  async #prepare(socket: string, key: string): Promise<void> {
    const { address, user, port, hostKey } = this.#host
    const server = { host: address, port }
    const known = join(this.#folder, 'known_hosts')
    await writeFile(known, `${nameOfServer(server)} ${hostKey}\n`, { mode: 0o600 })
    const config = [
      'Host *',
      `HostName ${address}`,
      `User ${quotedForSsh(user)}`,
      `Port ${port}`,
      ...sshSettings(server, known, 'key'),
      `IdentityAgent ${quotedForSsh(socket)}`,
      'StrictHostKeyChecking yes',
      'ClearAllForwardings yes',
      'ProxyCommand none',
      'RequestTTY no',
      'ConnectTimeout 15',
      'ServerAliveCountMax 3',
      '',
    ]
    await writeFile(join(this.#folder, 'config'), config.join('\n'), { mode: 0o600 })
    for (const end = Date.now() + AGENT_MS; !(await lstat(socket).catch(() => undefined)); await delay(10))
      if (Date.now() > end || this.#agent.exitCode !== null) throw new MachineFailure('ssh-agent did not start')
    const env = { ...(await ownEnv({ SSH_AUTH_SOCK: socket, SSH_ASKPASS: 'false', SSH_ASKPASS_REQUIRE: 'force' })) }
    const add = spawn(await needProgram('ssh-add'), ['-q', '-'], { env, stdio: ['pipe', 'ignore', 'ignore'] })
    add.stdin.on('error', ignored('its exit code says that it does not take the key'))
    add.stdin.end(`${key.trim()}\n`)
    const [code] = (await once(add, 'close')) as [number | null]
    if (code !== 0)
      throw new MachineFailure(`the key ${this.#host.sshKey} cannot be used: it is damaged, or has a passphrase`)
  }

  async #start({ script, args }: Pick<MachineCommand, 'script' | 'args'>, input: 'pipe' | 'ignore') {
    const words = ['sh', '-c', script, 'sh', ...args].map(quoted).join(' ')
    return spawn(await needProgram('ssh'), ['-F', join(this.#folder, 'config'), this.#host.name, '--', words], {
      env: { ...(await ownEnv()) },
      stdio: [input, 'pipe', 'pipe'],
      signal: this.#signal,
    })
  }

  /** Runs a command to its end; answers its output. */
  async run({ input, line, ...command }: MachineCommand): Promise<string> {
    const child = await this.#start(command, input ? 'pipe' : 'ignore')
    let [output, errors] = ['', '']
    const read = async () => {
      let rest = ''
      for await (const piece of child.stdout!.setEncoding('utf8') as AsyncIterable<string>) {
        output = (output + piece).slice(line ? -MOST_WORDS : -MOST_OUTPUT)
        const lines = (rest + piece).split('\n')
        rest = (lines.pop() ?? '').slice(-MOST_WORDS)
        // It says no more than is read.
        for (const each of lines) await line?.(each)
      }
    }
    child.stderr!.setEncoding('utf8').on('data', (piece: string) => (errors = (errors + piece).slice(-MOST_WORDS)))
    // What it does not read is no failure of its own: its exit code says more.
    const sent = input && pipeline(Readable.from(input), child.stdin!).catch((error: unknown) => error)
    const [[code]] = (await Promise.all([once(child, 'close'), read()])) as [[number | null], void]
    const unsent = await sent
    if (code !== 0)
      throw new MachineFailure(wordsOf(errors) || wordsOf(output) || `${this.#host.name}: a command ended with ${code}`)
    if (unsent instanceof Error) throw unsent
    return output
  }

  /** Runs a command that says one line, then holds something until it is released. */
  async hold(command: Pick<MachineCommand, 'script' | 'args'>): Promise<AsyncDisposable> {
    const child = await this.#start(command, 'pipe')
    child.stdin!.on('error', ignored('it has ended'))
    let errors = ''
    child.stderr!.setEncoding('utf8').on('data', (piece: string) => (errors = (errors + piece).slice(-MOST_WORDS)))
    child.on('error', ignored('its exit says so'))
    const ended = once(child, 'close')
    const first = await Promise.race([
      once(child.stdout!, 'data').then(() => 'holds' as const),
      ended.then(() => 'over' as const),
    ])
    if (first === 'over') throw new MachineFailure(wordsOf(errors) || `${this.#host.name} ended the connection`)
    return {
      [Symbol.asyncDispose]: async () => {
        child.stdin!.end()
        await ended
      },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#agent.exitCode === null && this.#agent.signalCode === null && this.#agent.pid !== undefined) {
      const gone = once(this.#agent, 'exit')
      this.#agent.kill('SIGTERM')
      await gone
    }
    await rm(this.#folder, { recursive: true, force: true })
  }
}
