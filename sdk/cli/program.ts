import { activityVerb } from './verbs/activity.js'
import { accountVerb } from './verbs/account.js'
import { acpVerb } from './verbs/acp/acp.js'
import { agentVerb } from './verbs/agent.js'
import { areasVerb } from './verbs/access/areas.js'
import { fork, rewindVerb } from './verbs/back.js'
import { browser } from './verbs/browser.js'
import { bundle } from './verbs/bundle.js'
import { call } from './verbs/call.js'
import { ciStep } from './verbs/ci-step.js'
import { checked, firstWord, parsed, verbFirst, wantsJson } from './arguments.js'
import { exitFor, interrupted } from './exit-codes.js'
import { groupVerb, knownGroups } from './calls/find.js'
import { calls } from './calls/list.js'
import { withVerbs } from './calls/named-calls.js'
import { candidates, type FittingWords } from './complete/complete.js'
import { commandsVerb, contractVerb, versionVerb } from './lines/commands.js'
import { configVerb } from './verbs/config.js'
import { completion, FILES_FIT, wordsOf } from './verbs/completion.js'
import { archive, rename, steerVerb } from './verbs/conversation.js'
import { deploy } from './deploy/deploy.js'
import { doctor } from './doctor/doctor.js'
import { events } from './verbs/events.js'
import { agentsVerb, diff, discard, land } from './verbs/fleet.js'
import { extension } from './verbs/extension/extension.js'
import { exitCodesHelp, programHelp, verbHelp } from './help.js'
import { lined } from './lines/lined.js'
import { link } from './verbs/link.js'
import { login } from './verbs/access/login.js'
import { logsVerb } from './verbs/logs.js'
import { machine } from './verbs/machine.js'
import { mcpVerb } from './verbs/mcp/mcp.js'
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
import { didYouMean } from './terminal/did-you-mean.js'
import { jsonLine, oneLine, plain } from './terminal/text.js'
import { token } from './verbs/access/tokens.js'
import { transcript } from './verbs/transcript.js'
import { uninstall } from './verbs/uninstall.js'
import { usage } from './verbs/usage.js'
import { EXIT, misused, type Terminal, type Verb } from './verb.js'
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
  doctor,
  wall,
  network,
  configVerb,
  bundle,
  deploy,
  call,
  calls,
  contractVerb,
  completion,
  acpVerb,
  mcpVerb,
  scriptAgentVerb,
  commandsVerb,
  versionVerb,
]

/** Runs the program and returns its exit code; prints a failure as one sentence on standard error. */
export const runProgram = async (args: readonly string[], terminal: Terminal): Promise<number> => {
  try {
    const work = (to: Terminal) => dispatch(args, to)
    return (await lined(args, terminal, work)) ?? (await work(terminal))
  } catch (error) {
    if (terminal.signal.aborted) return interrupted(terminal.signal.reason)
    const { code, message, reason } = exitFor(error)
    const said = wantsJson(args)
      ? jsonLine({ message, reason })
      : `sandbox: ${asTyped(await withVerbs(terminal, message))}\n`
    say(terminal, said)
    return code
  }
}

const dispatch = async (args: readonly string[], terminal: Terminal): Promise<number> => {
  if (args[0] === '__complete') return completed(terminal, args.slice(1))
  const [name, ...rest] = verbFirst(args)
  if (name === '--version' || name === '-v') return said(terminal, terminal.version)
  if (name === undefined || name === '--help' || name === '-h')
    return said(
      terminal,
      programHelp(
        VERBS.filter(({ hidden }) => !hidden),
        terminal.width,
      ),
    )
  if (name === 'help' && rest[0] === 'exit-codes') return said(terminal, exitCodesHelp(terminal.width))
  if (name === 'help') return dispatch([...rest, '--help'], terminal)
  const { verb, rest: own } = await verbNamed(terminal, name, rest)
  const given = parsed(verb, own)
  return given.on('help') ? said(terminal, verbHelp(verb, terminal.width)) : verb.run(terminal, checked(verb, given))
}

/** The verb of this program, else that of a group; a verb with the name of a group leaves to it what it does not do. */
const verbNamed = async (terminal: Terminal, name: string, rest: readonly string[]) => {
  const verb = VERBS.find(each => each.name === name || each.also === name)
  const word = firstWord(rest)
  const ofGroup = word !== undefined && verb?.group && /^[a-z][a-z-]*$/.test(word) && !wordsOf(verb).includes(word)
  if (verb && !ofGroup) return { verb, rest }
  if (name.startsWith('-')) return misused(`expected a verb first, found ${plain(name)}`)
  const found = await groupVerb(terminal, verb?.group ?? name, rest, verb)
  if (found) return found
  if (verb) return { verb, rest }
  const words = VERBS.flatMap(({ name: own, also, hidden }) => (hidden ? [] : [own, also ?? own]))
  const meant = didYouMean(name, [...words, ...(await knownGroups(terminal, rest))])
  return misused(`no verb ${plain(name)}${meant}; ${SELF} --help lists them`)
}

/** Prints what fits at the last word, for the scripts of shells: a word, a tab and what it is on each line. */
const completed = async (terminal: Terminal, words: readonly string[]): Promise<number> => {
  const { words: found, files } = await candidates(terminal, VERBS, words).catch((): FittingWords => ({ words: [] }))
  const last = words.at(-1) ?? ''
  const lines = found
    .filter(({ value }) => value.startsWith(last))
    .map(({ value, about }) => (about === undefined ? oneLine(value) : `${oneLine(value)}\t${oneLine(about)}`))
  await write(terminal, [...lines, ...(files ? [FILES_FIT] : [])].map(line => `${line}\n`).join(''))
  return EXIT.ok
}

const said = async (terminal: Terminal, text: string): Promise<number> => {
  await write(terminal, `${text}\n`)
  return EXIT.ok
}
