import { parseArgs } from 'node:util'
import { Unreached } from '../client.js'
import { Refusal } from '../refusal.js'
import { activityVerb } from './verbs/activity.js'
import { accountVerb } from './verbs/account.js'
import { agentVerb } from './verbs/agent.js'
import { areasVerb } from './verbs/access/areas.js'
import { fork, rewindVerb } from './verbs/back.js'
import { browser } from './verbs/browser.js'
import { bundle } from './verbs/bundle.js'
import { call } from './verbs/call.js'
import { ciStep } from './verbs/ci-step.js'
import { commandOf, groupCommand } from './calls/command.js'
import { calls, operations } from './calls/list.js'
import { completion, wordsOf } from './verbs/completion.js'
import { archive, rename, steerVerb } from './verbs/conversation.js'
import { events } from './verbs/events.js'
import { agentsVerb, diff, discard, land } from './verbs/fleet.js'
import { extension } from './verbs/extension/extension.js'
import { programHelp, verbHelp } from './help.js'
import { link } from './verbs/link.js'
import { login } from './verbs/access/login.js'
import { logsVerb } from './verbs/logs.js'
import { machine } from './verbs/machine.js'
import { members } from './verbs/access/members.js'
import { modelVerb } from './verbs/model.js'
import { modelsVerb } from './verbs/models.js'
import { network } from './verbs/network.js'
import { asTyped, SELF } from './terminal/own-name.js'
import { queue } from './verbs/queue.js'
import { answer, attachVerb, runVerb, stop } from './verbs/run.js'
import { scriptAgentVerb } from './verbs/script-agent.js'
import { serve } from './verbs/serve.js'
import { service } from './verbs/service.js'
import { secret } from './verbs/access/secret.js'
import { sessions } from './verbs/access/sessions.js'
import { terminal } from './verbs/terminal.js'
import { jsonLine, oneLine, plain } from './terminal/text.js'
import { token } from './verbs/access/tokens.js'
import { transcript } from './verbs/transcript.js'
import { uninstall } from './verbs/uninstall.js'
import { usage } from './verbs/usage.js'
import { CONNECTION, EXIT, CommandFailure, type GivenArguments, misused, type Terminal, type Verb } from './verb.js'
import { wall } from './verbs/wall.js'
import { say, write } from './terminal/write.js'

/** All verbs, in the order of the help. */
export const VERBS: readonly Verb[] = [
  serve,
  service,
  link,
  uninstall,
  login,
  runVerb,
  attachVerb,
  answer,
  steerVerb,
  queue,
  stop,
  agentsVerb,
  accountVerb,
  agentVerb,
  events,
  transcript,
  diff,
  land,
  discard,
  ciStep,
  rewindVerb,
  fork,
  rename,
  archive,
  members,
  areasVerb,
  sessions,
  token,
  modelsVerb,
  modelVerb,
  secret,
  extension,
  terminal,
  browser,
  activityVerb,
  logsVerb,
  usage,
  machine,
  wall,
  network,
  bundle,
  call,
  calls,
  completion(() => VERBS),
  scriptAgentVerb,
]

/** Runs the program and returns its exit code; prints a failure as one sentence on standard error. */
export const runProgram = async (args: readonly string[], terminal: Terminal): Promise<number> => {
  try {
    return await dispatch(args, terminal)
  } catch (error) {
    if (terminal.signal.aborted) return interrupted(terminal.signal.reason)
    const { code, message, reason } = failureOf(error)
    say(terminal, wantsJson(args) ? jsonLine({ message, reason }) : `sandbox: ${asTyped(message)}\n`)
    return code
  }
}

const dispatch = async (args: readonly string[], terminal: Terminal): Promise<number> => {
  const [name, ...rest] = verbFirst(args)
  if (name === '--version' || name === '-v') return said(terminal, terminal.version)
  if (name === undefined || name === '--help' || name === '-h')
    return said(terminal, programHelp(VERBS, terminal.width))
  if (name === 'help') return dispatch([...rest, '--help'], terminal)
  const verb = (await commandNamed(terminal, name, rest)) ?? verbNamed(name)
  const given = parsed(verb, verb.name === name ? rest : without(rest, verb.name.slice(name.length + 1)))
  return given.on('help') ? said(terminal, verbHelp(verb, terminal.width)) : verb.run(terminal, checked(verb, given))
}

/** The first word that is not an option. */
const firstWord = (args: readonly string[]): string | undefined => {
  for (let at = 0; at < args.length && args[at] !== '--'; at++) {
    if (!args[at]!.startsWith('-')) return args[at]
    if (flagOf(args[at])?.value !== undefined && !args[at]!.includes('=')) at++
  }
  return undefined
}

/** The arguments without the first occurrence of a word. */
const without = (args: readonly string[], word: string): readonly string[] => args.toSpliced(args.indexOf(word), 1)

/**
 * Finds the call of the daemon's document for `sandbox GROUP CALL`, or the group for its help.
 *
 * Verbs of the program take precedence; a verb whose name is not a group is never looked up.
 */
const commandNamed = async (terminal: Terminal, name: string, rest: readonly string[]): Promise<Verb | undefined> => {
  const verb = VERBS.find(verb => verb.name === name || verb.also === name)
  const word = firstWord(rest)
  if (
    !/^[a-z][a-z-]*$/.test(name)
    || (verb && (!verb.group || word === undefined || !/^[a-z][a-z-]*$/.test(word) || wordsOf(verb).includes(word)))
  )
    return undefined
  const given = parsed(
    calls,
    rest.filter((arg, at) => flagOf(arg) || flagOf(rest[at - 1])?.value !== undefined),
  )
  const all = await operations(terminal, given).catch((error: unknown) =>
    verb ? [] : Promise.reject(verbUnknown(name, error)),
  )
  const group = all.filter(each => each.group === name)
  const found = group.find(each => each.name === word)
  if (found) return commandOf(found)
  if (verb) return undefined
  if (!group.length) verbNamed(name)
  if (word === undefined && rest.some(arg => arg === '--help' || arg === '-h')) return groupCommand(name, group)
  return misused(
    `expected a call of ${name} (${group.map(each => each.name).join(', ')}), `
      + `found ${word === undefined ? 'none' : plain(word)}; ${SELF} calls ${name} says what they do`,
  )
}

/** The error for an unknown word when no daemon answers, so that its calls are not known. */
const verbUnknown = (name: string, error: unknown): unknown =>
  new CommandFailure(
    EXIT.usage,
    `no verb ${plain(name)}; ${SELF} --help lists them, and ${SELF} calls the calls of a daemon `
      + `(${plain(String((error as Error).message))})`,
  )

/** Moves options before the verb behind it. */
const verbFirst = (args: readonly string[]): readonly string[] => {
  let at = 0
  for (let flag = flagOf(args[at]); flag; flag = flagOf(args[at]))
    at += flag.value === undefined || args[at]!.includes('=') ? 1 : 2
  return at > 0 && at < args.length ? [args[at]!, ...args.slice(0, at), ...args.slice(at + 1)] : args
}

const flagOf = (arg: string | undefined) =>
  arg?.startsWith('--') ? CONNECTION[arg.slice(2).split('=')[0]!] : undefined

/** Whether failures are printed as JSON. */
const wantsJson = (args: readonly string[]): boolean => {
  const end = args.indexOf('--')
  return (end < 0 ? args : args.slice(0, end)).includes('--json')
}

const verbNamed = (name: string): Verb =>
  VERBS.find(verb => verb.name === name || verb.also === name)
  ?? misused(
    name.startsWith('-')
      ? `expected a verb first, found ${plain(name)}`
      : `no verb ${plain(name)}; ${SELF} --help lists them`,
  )

const said = async (terminal: Terminal, text: string): Promise<number> => {
  await write(terminal, `${text}\n`)
  return EXIT.ok
}

/** Refuses secrets as arguments, which other users of the machine can see. */
const refuseSecrets = (verb: Verb, args: readonly string[]): void => {
  const end = args.indexOf('--')
  const given = (end < 0 ? args : args.slice(0, end)).some(arg => /^--token(=|$)/.test(arg))
  if (given && 'token-file' in verb.flags) {
    misused(
      `${verb.name}: other users of this machine can see arguments: put the token into SANDBOX_TOKEN, or into `
        + 'a file for --token-file FILE (- is standard input)',
    )
  }
}

const parsed = (verb: Verb, args: readonly string[]): GivenArguments => {
  refuseSecrets(verb, args)
  const options = Object.fromEntries(
    Object.entries({ ...verb.flags, help: { help: '', short: 'h' } }).map(([name, flag]) => [
      name,
      {
        type: 'value' in flag ? ('string' as const) : ('boolean' as const),
        multiple: 'multiple' in flag,
        ...('short' in flag && { short: flag.short! }),
      },
    ]),
  )
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true })
    return {
      args: positionals,
      on: flag => values[flag] === true,
      text: flag => (typeof values[flag] === 'string' ? values[flag] : undefined),
      all: flag => (Array.isArray(values[flag]) ? values[flag].map(String) : []),
    }
  } catch (error) {
    const [sentence = ''] = (error as Error).message.split('. ')
    return misused(`${verb.name}: ${plain(sentence.charAt(0).toLowerCase() + sentence.slice(1)).replace(/\.$/, '')}`)
  }
}

const checked = (verb: Verb, given: GivenArguments): GivenArguments => {
  const { least = 0, most = 0 } = verb
  const found = given.args.length
  if (found < least || found > most)
    misused(`expected ${SELF} ${verb.name} ${verb.usage}`.trimEnd() + `; ${SELF} ${verb.name} --help says more`)
  return given
}

/** The `reason` of a failure in JSON output, by exit code. */
const REASON: { readonly [code: number]: string } = {
  [EXIT.usage]: 'usage',
  [EXIT.noDaemon]: 'no-daemon',
  [EXIT.turn]: 'turn',
}

const failureOf = (error: unknown): { code: number; message: string; reason: string } => {
  if (error instanceof CommandFailure)
    return { code: error.code, message: error.message, reason: REASON[error.code] ?? 'failed' }
  if (error instanceof Unreached) return { code: EXIT.noDaemon, message: oneLine(error.message), reason: 'no-daemon' }
  if (error instanceof Refusal) {
    const { errors = [], retryAfter } = error.detail
    const fields = errors
      .slice(1)
      .map(({ path, expected }) => `; ${path}: expected ${expected}`)
      .join('')
    return {
      code: EXIT.failed,
      message: oneLine(`${error.message}${fields}${retryAfter === undefined ? '' : ` (ask again in ${retryAfter} s)`}`),
      reason: error.reason,
    }
  }
  const { message } = (error ?? {}) as { message?: string }
  return { code: EXIT.failed, message: plain(String(message ?? error).split('\n')[0]!), reason: 'failed' }
}

const interrupted = (reason: unknown): number =>
  reason === 'SIGTERM' ? 143 : reason === 'SIGHUP' ? 129 : EXIT.interrupted
