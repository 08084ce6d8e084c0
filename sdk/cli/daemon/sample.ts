import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { ChildProcess } from 'node:child_process'
import type { Card, CardReply } from '../../../plugins/agent/contract.js'
import { askPerson, firstChoice } from '../follow/cards.js'
import { asOwner, type Connection } from './connection.js'
import { daemonAt, findDaemon, type Running } from './daemon.js'
import { ended, startDaemonProcess } from './daemon-process.js'
import { landWork, showDiff } from '../verbs/fleet.js'
import { followRun } from '../follow/follow.js'
import { isAtLeast, readLogLine } from '../../log-line.js'
import { loginLink } from '../verbs/access/login.js'
import { offerLink } from './link-offer.js'
import { isOfFolder, SELF } from '../terminal/own-name.js'
import { answerWords } from '../follow/card-lines.js'
import { mintConversation, startTurn } from '../follow/turn.js'
import { sampleWorkspace } from './sample-workspace.js'
import { plain, stylesOf } from '../terminal/text.js'
import { EXIT, CommandFailure, type Terminal } from '../verb.js'
import { say, write } from '../terminal/write.js'

const PATIENCE_MS = 5000

/** Runs a daemon on the sample workspace, demonstrates one turn, and runs until it is stopped. */
export const startSample = async (terminal: Terminal, flags: readonly string[]): Promise<number> => {
  const workspace = await sampleWorkspace(terminal.env)
  const child = startDaemonProcess(
    terminal,
    [...flags, `--workspace=${workspace}`, '--json'],
    ['ignore', 'pipe', 'pipe'],
  )
  const over = ended(child, terminal)
  const logs = shownLogs(terminal, child)
  const url = await Promise.race([readyAt(child), over.then(() => undefined)])
  if (url === undefined) {
    await logs.closed
    return over
  }
  logs.ready()
  const { bold } = stylesOf(terminal.colour)
  await write(terminal, `${bold(`the daemon runs at ${url}`)}\nworkspace ${workspace}\n\n`)
  const conversationId = mintConversation()
  const shown = show(terminal, url, flags, conversationId).catch(error => {
    if (!terminal.signal.aborted)
      say(terminal, `sandbox: the demonstration stopped: ${plain((error as Error).message)}\n`)
  })
  await Promise.race([shown, over])
  if (child.exitCode === null && !terminal.signal.aborted) {
    await write(terminal, await nextSteps(terminal, url, flags, conversationId))
    await Promise.race([offerLink(terminal), over])
  }
  return over
}

const readyAt = async (child: ChildProcess): Promise<string | undefined> => {
  for await (const line of createInterface({ input: child.stdout! })) {
    const { ready, url } = parsed(line)
    if (ready === true && typeof url === 'string') {
      child.stdout!.resume()
      return url
    }
  }
  return undefined
}

const parsed = (line: string): { readonly [key: string]: unknown } => {
  try {
    return (JSON.parse(line) as { [key: string]: unknown } | undefined) ?? {}
  } catch {
    return {}
  }
}

/** Prints the daemon's standard error, and of its log only warnings and errors. */
const shownLogs = (terminal: Terminal, child: ChildProcess): { ready(): void; readonly closed: Promise<unknown> } => {
  const lines = createInterface({ input: child.stderr! })
  let ready = false
  lines.on('line', line => {
    const logged = readLogLine(line)
    if (!logged) return void say(terminal, `${plain(line)}\n`)
    const { level, group, message } = logged
    const words = plain(ready ? `the daemon logs: ${group ? `${group}: ` : ''}${message}` : `sandbox: ${message}`)
    if (isAtLeast(level, 'warn')) say(terminal, `${words}\n`)
  })
  return {
    ready: () => {
      ready = true
    },
    closed: once(lines, 'close'),
  }
}

const own = async (terminal: Terminal, url: string, flags: readonly string[]): Promise<Running> => {
  const data = flags.find(flag => flag.startsWith('--data='))?.slice('--data='.length) ?? terminal.env.SANDBOX_DATA
  return (
    (await (data ? findDaemon(terminal, data) : daemonAt(terminal, url)))
    ?? Promise.reject(new CommandFailure(EXIT.noDaemon, `the daemon at ${url} cannot be found in its data folder`))
  )
}

const show = async (
  terminal: Terminal,
  url: string,
  flags: readonly string[],
  conversationId: string,
): Promise<void> => {
  const daemon = await own(terminal, url, flags)
  await asOwner(daemon, terminal, async connection => {
    const { bold } = stylesOf(terminal.colour)
    await write(terminal, `${bold(`$ ${SELF} run "/demo"`)}\n`)
    const { end } = await demo(terminal, connection, conversationId)
    if (end !== 'completed') return
    await write(terminal, `\n${bold(`$ ${SELF} diff ${conversationId}`)}\n`)
    const { repos } = await showDiff(terminal, connection.client, conversationId)
    const expect = Object.fromEntries(repos.map(({ repo, tip }) => [repo, tip]))
    await write(terminal, `\n${bold(`$ ${SELF} land ${conversationId}`)}\n`)
    await landWork(terminal, connection.client, conversationId, { expect })
  })
}

const demo = async (terminal: Terminal, connection: Connection, conversationId: string) => {
  await startTurn(connection, { prompt: '/demo', conversationId, isolated: true, title: 'The demonstration' })
  return followRun(terminal, connection.client, {
    conversationId,
    json: false,
    onCard: (card, signal) => answered(terminal, card, signal),
  })
}

/** The person's answer; the first choice without a terminal, or if no one starts typing within 5 s. */
const answered = async (terminal: Terminal, card: Card, signal: AbortSignal): Promise<CardReply | undefined> => {
  const self = firstChoice(card)
  if (!terminal.interactive) {
    await write(terminal, `no terminal, so the demonstration answers: ${plain(answerWords(self))}\n`)
    return self
  }
  const patience = new AbortController()
  const timer = setTimeout(() => patience.abort(), PATIENCE_MS)
  const typing = () => clearTimeout(timer)
  terminal.in.on('data', typing)
  try {
    await write(terminal, `(the demonstration answers after ${PATIENCE_MS / 1000} s)\n`)
    const reply = await askPerson(terminal, card, AbortSignal.any([signal, patience.signal]))
    if (reply || !patience.signal.aborted) return reply
    await write(
      terminal,
      `\nno answer for ${PATIENCE_MS / 1000} s, so the demonstration answers: ${plain(answerWords(self))}\n`,
    )
    return self
  } finally {
    clearTimeout(timer)
    terminal.in.off('data', typing)
  }
}

const nextSteps = async (
  terminal: Terminal,
  url: string,
  flags: readonly string[],
  conversationId: string,
): Promise<string> => {
  const { bold } = stylesOf(terminal.colour)
  // A login link is a secret: printed only at a terminal, never into a file.
  const link = terminal.interactive
    ? await own(terminal, url, flags)
        .then(daemon => loginLink(daemon, terminal.signal))
        .catch(() => undefined)
    : undefined
  const rows = [
    link
      ? [`${link}&conversation=${conversationId}`, 'opens this conversation in the console: once, within 5 minutes']
      : [`${SELF} login`, 'a link that signs you in to the console'],
    [`${SELF} run "/demo"`, 'runs the demonstration again, from a second terminal'],
    [`${SELF} agents`, 'the conversations'],
    [`${url}/reference`, 'all calls'],
    [isOfFolder(SELF) ? 'npm start -- --workspace DIR' : `${SELF} serve --workspace DIR`, 'serves a folder of yours'],
    ...(isOfFolder(SELF)
      ? [[`${SELF} link`, 'makes the command sandbox for every folder; until then these work in this folder alone']]
      : []),
  ]
  const next = rows.map(([what, why]) => `  ${what}\n      ${why}\n`)
  return `\n${bold('The daemon stays up; Ctrl-C stops it. What to do next:')}\n${next.join('')}`
}
