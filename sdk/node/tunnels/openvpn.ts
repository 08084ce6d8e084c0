import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, Refusal, ignored } from '../../index.js'
import { writeAtomic } from '../files/files.js'
import { codeOf } from '../files/paths.js'
import { needProgram } from '../programs/run.js'
import { maskedNetwork } from './networks.js'
import { deleteInterface, holdsWithin } from './interfaces.js'
import { signalProcess } from './processes.js'
import { startLasting } from './programs.js'
import type { ClientHealth, TunnelDial, Dialled, Standing, TunnelClient } from './client.js'
import type { OpenvpnConf } from './openvpn-conf.js'
import { Management, MANAGEMENT, quotedArgument } from './management.js'

const CONFIG = 'client.ovpn'
const END_MS = 10_000
const KILL_MS = 3_000
/** States of the client in which it has no connection to its gateway. */
const TRYING: ReadonlySet<string> = new Set(
  'CONNECTING WAIT AUTH GET_CONFIG ASSIGN_IP ADD_ROUTES RECONNECTING RESOLVE TCP_CONNECT AUTH_PENDING'.split(' '),
)

/** What a tunnel of OpenVPN is dialled with. */
export interface OpenvpnDial {
  readonly conf: OpenvpnConf
  /** Only these networks go through. */
  readonly only?: readonly string[]
  /** The interface gets no address and no route from the client. */
  readonly bare?: true
  readonly username?: string
  readonly password?: string
  readonly keyPassphrase?: string
}

/** A client that this daemon speaks to. */
interface Session {
  readonly management: Management
  readonly states: { state: string }
}
/** What a client is answered with when it asks. */
interface Answers {
  readonly username?: string | undefined
  password?: string | undefined
  readonly keyPassphrase?: string | undefined
  otp?: string | undefined
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')

const isOurs = async ({ pid, interface: name }: Standing): Promise<boolean> => {
  if (pid === undefined) return false
  const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
  return words.includes(MANAGEMENT) && words[words.indexOf('--dev') + 1] === name
}

const routeArguments = (only: readonly string[] | undefined): string[] => {
  if (!only) return []
  const each = only.flatMap(network => {
    const masked = maskedNetwork(network)
    return masked ? ['--route', masked.address, masked.mask] : ['--route-ipv6', network]
  })
  return ['--route-nopull', ...each]
}

/** OpenVPN, whose client is spoken to over its management socket alone: no secret is on a command line. */
export class OpenvpnClient implements TunnelClient<OpenvpnDial> {
  readonly #sessions = new Map<string, Session>()

  async dial(dial: TunnelDial<OpenvpnDial>): Promise<Dialled> {
    const { id, interface: name, folder, settings, log, signal } = dial
    const { conf, only, bare, username } = settings
    await writeAtomic(join(folder, CONFIG), conf.text)
    await rm(join(folder, MANAGEMENT), { force: true })
    const args = [
      ...['--config', CONFIG, '--dev', name, '--dev-type', conf.device, '--verb', '3'],
      ...['--script-security', '1', '--auth-nocache', '--auth-retry', 'interact'],
      // The interface stays while the client looks for its gateway again.
      ...['--persist-tun', '--persist-key'],
      ...['--management', MANAGEMENT, 'unix', '--management-query-passwords', '--management-hold'],
      ...(username !== undefined && !conf.asksUser ? ['--auth-user-pass'] : []),
      ...routeArguments(only),
      ...(bare ? ['--ifconfig-noexec', '--route-noexec', '--allow-recursive-routing'] : []),
    ]
    const pid = await startLasting(await needProgram('openvpn'), args, folder)
    await dial.started(pid)
    log(`openvpn is process ${pid}`)
    return this.#converse({ id, interface: name, folder, pid }, dial, signal)
  }

  /** Speaks to the client until it is connected. */
  async #converse(standing: Standing, { settings, otp, log }: TunnelDial<OpenvpnDial>, signal: AbortSignal) {
    const { promise, resolve, reject } = Promise.withResolvers<Dialled>()
    promise.catch(ignored('the caller that awaits it gets the failure'))
    const failed = (message: string): void => reject(new Refusal('dependency', message))
    let dns: string[] = []
    let words = ''
    const answers: Answers = { ...settings, otp }
    const session = await this.#meet(standing, signal, (line, now) => {
      const [, kind = '', rest = ''] = /^([A-Z-]+):(.*)$/.exec(line) ?? []
      if (kind === 'LOG') {
        const text = rest.split(',').slice(2).join(',')
        log(text)
        dns = dnsIn(text) ?? dns
        words = /AUTH_FAILED|TLS Error|RESOLVE|Connection refused|Cannot|error/i.test(text) ? text : words
      } else if (kind === 'FATAL') failed(`openvpn ended: ${rest.slice(0, 300)}`)
      else if (kind === 'PASSWORD') answer(now, rest, answers, message => failed(withWords(message, words)))
      else if (kind === 'STATE') {
        const [, state = '', detail = '', address = ''] = rest.split(',')
        if (state === 'CONNECTED' && detail === 'SUCCESS') {
          // A code was for this dial alone; a later sign-in of the client begins with the password.
          Object.assign(answers, { password: settings.password, otp: undefined })
          resolve({ dns, ...(address !== '' && { address }) })
        } else if (state === 'CONNECTED') failed(`openvpn is connected, and not all of it worked: ${detail}`)
        else if (state === 'EXITING') failed(withWords(`openvpn ended: ${detail}`, words))
      }
    })
    void session.management.closed.then(() => failed(withWords('openvpn ended', words)))
    const abort = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error('stopped'))
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    try {
      await begin(session.management)
      return await promise
    } catch (error) {
      throw error instanceof Error && error.name === 'TimeoutError'
        ? new Refusal('dependency', withWords('the gateway did not answer within 60 s', words))
        : error
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  /** Connects to a client; `said` gets its lines. */
  async #meet(
    { id, folder, pid }: Standing,
    signal: AbortSignal | undefined,
    said: (line: string, management: Management) => void,
  ): Promise<Session> {
    for (const end = Date.now() + END_MS; ;) {
      signal?.throwIfAborted()
      try {
        const states = { state: '' }
        const management = await Management.connect(folder, (line, to) => {
          const state = /^STATE:[^,]*,([A-Z_]+)/.exec(line)?.[1]
          if (state !== undefined) states.state = state
          said(line, to)
        })
        const session: Session = { management, states }
        this.#sessions.set(id, session)
        void management.closed.then(() => this.#sessions.get(id) === session && this.#sessions.delete(id))
        return session
      } catch (error) {
        const over = Date.now() >= end || (pid !== undefined && !(await isAlive(pid)))
        if (!over && (codeOf(error) === 'ENOENT' || codeOf(error) === 'ECONNREFUSED')) {
          await new Promise(resolve => setTimeout(resolve, 30))
          continue
        }
        throw new Refusal('dependency', 'openvpn ended before it could be spoken to: its configuration may be wrong', {
          cause: error,
        })
      }
    }
  }

  async drop(standing: Standing): Promise<void> {
    const { id, folder, pid, interface: name } = standing
    const session =
      this.#sessions.get(id)
      ?? (await Management.connect(folder, () => {}).then(
        management => ({ management }),
        () => undefined,
      ))
    const gone = async () => pid === undefined || !(await isOurs(standing))
    if (session) {
      await session.management.send('signal SIGTERM').catch(() => undefined)
      await Promise.race([session.management.closed, new Promise(resolve => setTimeout(resolve, END_MS).unref())])
    } else if (!(await gone())) signalProcess(pid!, 'SIGTERM')
    if (!(await holdsWithin(session ? KILL_MS : END_MS, gone))) {
      signalProcess(pid!, 'SIGKILL')
      await holdsWithin(KILL_MS, gone)
    }
    session?.management.end()
    this.#sessions.delete(id)
    await deleteInterface(name)
    for (const file of [MANAGEMENT, CONFIG]) await rm(join(folder, file), { force: true })
  }

  async health({ id }: Standing): Promise<ClientHealth> {
    const state = this.#sessions.get(id)?.states.state ?? ''
    return TRYING.has(state) ? { trying: true } : {}
  }

  async resume(standing: Standing, settings: () => Promise<OpenvpnDial | undefined>): Promise<void> {
    const session = await this.#meet(standing, undefined, (line, management) => {
      if (!line.startsWith('PASSWORD:')) return
      void settings()
        .then(known => known && answer(management, line.slice('PASSWORD:'.length), { ...known }, () => {}))
        .catch(() => undefined)
    })
    await session.management.send('state on')
    const now = await session.management.send('hold off')
    if (now.startsWith('ERROR')) refuse('dependency', `openvpn refused: ${now}`)
  }

  leave(): void {
    for (const { management } of this.#sessions.values()) management.end()
  }
}

const begin = async (management: Management): Promise<void> => {
  for (const command of ['state on', 'log on', 'hold off', 'hold release']) {
    const answered = await management.send(command)
    if (answered.startsWith('ERROR')) refuse('dependency', `openvpn refused ${command}: ${answered}`)
  }
}

/** Answers what a client asks for; `failed` gets why that cannot be. */
const answer = (management: Management, asked: string, known: Answers, failed: (message: string) => void): void => {
  const send = (command: string): void => void management.send(command).catch(() => undefined)
  const [, what = ''] = /'([^']+)'/.exec(asked) ?? []
  if (asked.startsWith('Verification Failed')) {
    const challenge = /\['?(CRV1:[^\]']*)'?\]/.exec(asked)?.[1]
    if (challenge === undefined) return failed(`the gateway refused the ${what === 'Private Key' ? 'key' : 'sign-in'}`)
    if (known.otp === undefined) return failed('the gateway asks for a code: dial again with the code as otp')
    known.password = `CRV1::${challenge.split(':')[2] ?? ''}::${known.otp}`
    known.otp = undefined
    return
  }
  if (!asked.startsWith('Need')) return
  if (what === 'Private Key') {
    if (known.keyPassphrase === undefined) return failed('the key has a passphrase: give it in keyPassphrase')
    return send(`password "Private Key" ${quotedArgument(known.keyPassphrase)}`)
  }
  const { username, password, otp } = known
  if (username === undefined || password === undefined)
    return failed('the gateway asks for a user and a password: give them in their fields')
  const asksCode = /SC:\d/.test(asked)
  if (asksCode && otp === undefined) return failed('the gateway asks for a code: dial again with the code as otp')
  const given = asksCode ? `SCRV1:${base64(password)}:${base64(otp!)}` : password
  send(`username ${quotedArgument(what)} ${quotedArgument(username)}`)
  send(`password ${quotedArgument(what)} ${quotedArgument(given)}`)
}

const dnsIn = (line: string): string[] | undefined => {
  if (!line.includes('PUSH_REPLY')) return undefined
  return [...line.matchAll(/dhcp-option DNS6? ([0-9a-fA-F.:]+)/g)].map(([, address = '']) => address)
}

const withWords = (message: string, words: string): string =>
  words === '' ? message : `${message}: ${words.slice(0, 200)}`

const isAlive = async (pid: number): Promise<boolean> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const state = stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3)
  return state !== '' && state !== 'Z'
}
