import type { Abilities, ProviderAdapter, TurnFailure, TurnIo, TurnRequest } from '../adapter.js'
import { programFile } from '../../../../sdk/node/programs/package.js'
import type { Command as Shortcut, Frame } from '../../turn/frames/frames.js'
import { installed, type AgentProgram } from '../acp/program.js'
import type { AcpRun } from '../acp/turn.js'
import { DEMO, HELP } from './help.js'
import { interpret } from './interpreter.js'
import { parse } from './parse.js'
import { Replay } from './replay.js'
import { isSaved } from './saved.js'
import { literal } from './variables.js'
import type { ScriptCommand } from './verb.js'
import { verbs } from './verbs.js'

export const SHORTCUTS: readonly Shortcut[] = [
  { name: 'help', description: 'Shows the language of this provider.' },
  { name: 'demo', description: 'Runs a short script: a list, a file, a command, a question and an answer.' },
]

const POINTER =
  'This provider runs scripts and needs no model; send /help to see their language, or /demo to see one at work.'

const said = (text: string): ScriptCommand[] => [
  { line: 1, name: 'say', verb: verbs.get('say')!, input: { text: literal(text) } },
]

/** What is said where a script is to go on that ran elsewhere: none of its effects is repeated. */
export const LOST = 'The rest of the script was lost with the process that ran it; send it again.'

/** The commands that the words of a turn stand for, or why there are none. */
export const commandsOf = (words: string): readonly ScriptCommand[] | TurnFailure => {
  const parsed = parse(words)
  switch (parsed.kind) {
    case 'script':
      return parsed.commands
    case 'syntax':
      return {
        code: 'script-syntax',
        message: `line ${parsed.line}: ${parsed.message}; nothing has run, and /help shows the language`,
      }
    case 'plain':
      return said(`You said: ${[...words.slice(0, 400)].slice(0, 200).join('')}\n\n${POINTER}`)
    case 'slash':
      if (parsed.name === 'help') return said(HELP)
      if (parsed.name === 'demo') return commandsOf(DEMO)
      return {
        code: 'unknown-command',
        message: `there is no command /${parsed.name.slice(0, 60)}; this provider has /help and /demo`,
      }
  }
}

/** Frames at the start of a turn, but for those that a first attempt wrote. */
function* opening({ conversationId, model, harness, fast, depth, since = [] }: TurnRequest): Generator<Frame> {
  const past = new Replay(since)
  if (!past.has('session')) yield { kind: 'session', sessionId: `script-${conversationId}` }
  if (!past.has('init')) yield { kind: 'init', model, provider: 'script', harness }
  if (fast && depth === 0 && !past.has('fast_mode')) yield { kind: 'fast_mode', state: 'on' }
  if (!past.has('commands')) yield { kind: 'commands', items: [...SHORTCUTS] }
}

function* lost({ since = [] }: TurnRequest): Generator<Frame> {
  if (!since.some(({ kind }) => kind === 'delta')) yield { kind: 'delta', text: LOST }
  yield { kind: 'text_end' }
}

/** Where the frames of a turn that came here from elsewhere begin to be this provider's. */
const arrival = (since: readonly Frame[]): number =>
  since.findLastIndex(frame => frame.kind === 'switched' && frame.kept === 'record') + 1

async function* run(whole: TurnRequest, io: TurnIo): AsyncGenerator<Frame, void> {
  const { since = [] } = whole
  const from = arrival(since)
  const begunElsewhere = since.slice(0, from).some(({ kind }) => kind === 'delta' || kind === 'tool_call')
  const request = from ? { ...whole, since: since.slice(from) } : whole
  if (request.state !== undefined && !isSaved(request.state)) {
    const message = 'what this turn saved before the restart cannot be read; send the message again'
    return yield { kind: 'error', message }
  }
  const begins = request.state === undefined && request.round === undefined
  if (begins || request.resume?.reason === 'outage') yield* opening(request)
  if (request.state === undefined && begunElsewhere) return yield* lost(request)
  const commands = commandsOf(request.words)
  if ('message' in commands) return yield { kind: 'error', ...commands }
  yield* interpret(commands, request, io)
}

const ABILITIES: Abilities = {
  words: true,
  permissions: 'modes',
  questions: true,
  commands: true,
  terminals: true,
  state: true,
  offline: true,
  fast: true,
}
/** As an agent program it is the same language with fewer powers. */
const OUTSIDE: Abilities = {
  ...ABILITIES,
  words: false,
  permissions: 'plan',
  questions: false,
  state: false,
  fast: false,
}

/** The built-in offline provider: scripts in place of a model, with the real tools, cards and rules. */
export const scriptAdapter: ProviderAdapter = {
  id: 'script',
  label: 'Script (offline)',
  harnesses: ['native'],
  ownHarness: 'native',
  models: ['script', 'script-fast'],
  commands: SHORTCUTS,
  abilities: () => ABILITIES,
  run,
}

/** The same provider, which can also run its scripts in an agent program of their own. */
export const scriptWith = (program: AgentProgram, vendor: AcpRun): ProviderAdapter => ({
  ...scriptAdapter,
  harnesses: ['native', 'vendor-code'],
  abilities: harness => (harness === 'native' ? ABILITIES : OUTSIDE),
  preflight: async harness => {
    if (harness === 'vendor-code') await installed(program)
  },
  run: (request, io) =>
    request.harness === 'native' ? run(request, io) : vendor(scriptAdapter.id, program, request, io),
})

/** The bundled agent program. */
export const scriptAgent: AgentProgram = {
  label: 'the script agent',
  command: [process.execPath, programFile('plugins/agent/providers/script-agent.js')],
  install: 'it comes with the sandbox; install the sandbox again',
  needs: [programFile('.')],
  asks: true,
}
