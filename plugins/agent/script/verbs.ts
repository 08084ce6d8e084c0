import type { ErrorCode, PermissionMode, QuestionOption, TodoItem } from '../frames.js'
import { ABSENT, type AbsentVerb, type Action } from './command.js'
import { readHelper, readJoin } from './helper-verbs.js'
import { Malformed } from './malformed.js'

/** What stands behind a verb on its line, and the `|` lines below it. */
export interface Argument {
  readonly text: string
  readonly lines: readonly string[]
}

const MOST_WAIT_MS = 86_400_000
const MODES: readonly string[] = ['default', 'acceptEdits', 'plan', 'bypassPermissions'] satisfies PermissionMode[]
const CODES: { readonly [code in ErrorCode]: true } = {
  'session-not-found': true, rate_limit: true, reauth: true, 'token-refused': true, 'not-entitled': true,
  'provider-outage': true, 'trial-unavailable': true, 'trial-model-unavailable': true, 'trial-exhausted': true,
  'unknown-command': true, 'model-invalid': true, 'subscription-required': true, 'agent-busy': true,
  'harness-missing': true, 'harness-crashed': true, 'context-full': true, 'runner-lost': true, 'script-syntax': true,
}
const MARKS: { readonly [mark: string]: TodoItem['status'] } = { ' ': 'pending', '~': 'in_progress', x: 'completed' }

type Reader = (argument: Argument, verb: string) => Action

const malformed = (form: string, found: string): never => {
  const shown = found.length > 60 ? `${found.slice(0, 60)}…` : found
  throw new Malformed(`expected ${form}, found ${found === '' ? 'nothing' : `"${shown}"`}`)
}

/** The text of the line and of the lines below it, as one. */
const joined = ({ text, lines }: Argument): string =>
  text === '' ? lines.join('\n') : lines.length === 0 ? text : `${text}\n${lines.join('\n')}`

const prose = (verb: 'say' | 'think' | 'fail' | 'plan'): Reader => argument => {
  const text = joined(argument)
  return text === '' ? malformed(`${verb} TEXT, or lines that begin with |`, '') : { verb, text }
}

const needed = (form: string, text: string): string => (text === '' ? malformed(form, '') : text)

const content = (lines: readonly string[]): string => lines.map(line => `${line}\n`).join('')

const whole = (form: string, text: string | undefined, most: number): number =>
  text !== undefined && /^\d{1,10}$/.test(text) && Number(text) <= most ? Number(text) : malformed(form, text ?? '')

const todoItem = (part: string): TodoItem => {
  const text = part.trim()
  const status = text[0] === '[' && text[2] === ']' ? MARKS[text[1]!] : undefined
  const content = text.slice(3).trim()
  return status === undefined || content === '' ? malformed('todo [ ] a | [~] b | [x] c', text) : { content, status }
}

const option = (line: string): QuestionOption => {
  const colon = line.indexOf(':')
  const label = (colon === -1 ? line : line.slice(0, colon)).trim()
  return label === ''
    ? malformed('a line of the form label: description', line)
    : { label, description: colon === -1 ? '' : line.slice(colon + 1).trim() }
}

const ask = (several: boolean): Reader => ({ text, lines }, verb) => {
  const options = lines.map(option)
  const labels = new Set(options.map(({ label }) => label))
  const twice = options.find(({ label }) => !labels.delete(label))
  if (twice) malformed('labels that differ', twice.label)
  return { verb: 'ask', question: needed(`${verb} QUESTION`, text), several, options }
}

const sided = (lines: readonly string[], sign: string): string[] =>
  lines.filter(line => line[0] === sign).map(line => line.slice(line[1] === ' ' ? 2 : 1))

const READERS: { readonly [verb: string]: Reader } = {
  say: prose('say'),
  think: prose('think'),
  fail: prose('fail'),
  plan: prose('plan'),
  todo: ({ text }) => ({ verb: 'todo', items: text.split('|').map(todoItem) }),
  read: ({ text }) => {
    const range = /\s(\d{1,9})-(\d{1,9})$/.exec(text.slice(-24))
    if (!range) return { verb: 'read', path: needed('read PATH [FROM-TO]', text) }
    const [from, to] = [Number(range[1]), Number(range[2])]
    if (from < 1 || to < from) malformed('lines counted from 1, the first before the last', range[0].trim())
    return { verb: 'read', path: text.slice(0, -range[0].length).trim(), from, to }
  },
  list: ({ text }) => ({ verb: 'list', path: text === '' ? '.' : text }),
  delete: ({ text }) => ({ verb: 'delete', path: needed('delete PATH', text) }),
  image: ({ text }) => ({ verb: 'image', path: needed('image PATH', text) }),
  write: ({ text, lines }) => ({ verb: 'write', path: needed('write PATH', text), content: content(lines) }),
  append: ({ text, lines }) => ({ verb: 'append', path: needed('append PATH', text), content: content(lines) }),
  edit: ({ text, lines }) => {
    const stray = lines.find(line => line[0] !== '-' && line[0] !== '+')
    if (stray !== undefined) malformed('lines of the form - old and + new', stray === '' ? 'an empty line' : stray)
    const old = sided(lines, '-')
    if (old.length === 0) malformed('at least one line of the form - old', '')
    return { verb: 'edit', path: needed('edit PATH', text), old: old.join('\n'), new: sided(lines, '+').join('\n') }
  },
  move: ({ text }) => {
    const [from, to, more] = text.split(' -> ', 3).map(part => part.trim())
    return from && to && more === undefined ? { verb: 'move', from, to } : malformed('move FROM -> TO', text)
  },
  run: ({ text }) => ({ verb: 'run', text: needed('run COMMAND', text) }),
  ask: ask(false),
  'ask*': ask(true),
  permit: ({ text }) => {
    const colon = text.indexOf(':')
    const [tool, sentence] = [text.slice(0, Math.max(colon, 0)).trim(), text.slice(colon + 1).trim()]
    return tool && sentence ? { verb: 'permit', tool, sentence } : malformed('permit TOOL: SENTENCE', text)
  },
  wait: ({ text }) => {
    const form = `wait MS or wait words [MS], at most ${MOST_WAIT_MS} ms`
    if (text === 'words') return { verb: 'wait words' }
    if (!/^words\s/.test(text)) return { verb: 'wait', ms: whole(form, text, MOST_WAIT_MS) }
    return { verb: 'wait words', ms: whole(form, text.slice(5).trim(), MOST_WAIT_MS) }
  },
  mode: ({ text }) =>
    MODES.includes(text)
      ? { verb: 'mode', mode: text as PermissionMode }
      : malformed(`a mode (${MODES.join(', ')})`, text),
  usage: ({ text }) => {
    const form = 'usage IN OUT [USD]'
    const [input, output, usd, more] = text.split(/\s+/, 4)
    if (more !== undefined || (usd !== undefined && !/^\d{1,9}(\.\d{1,9})?$/.test(usd))) malformed(form, text)
    const most = 4_294_967_295
    const tokens = { input: whole(form, input, most), output: whole(form, output, most) }
    return { verb: 'usage', ...tokens, ...(usd !== undefined && { costUsd: Number(usd) }) }
  },
  expect: argument => ({ verb: 'expect', text: needed('expect TEXT', joined(argument)) }),
  refuse: ({ text }) => {
    const [code = ''] = text.split(/\s/, 1)
    const message = text.slice(code.length).trim()
    if (!Object.hasOwn(CODES, code) || message === '') {
      malformed(`refuse CODE MESSAGE, a code of ${Object.keys(CODES).join(', ')}`, text)
    }
    return { verb: 'refuse', code: code as ErrorCode, text: message }
  },
  outage: ({ text }) => ({ verb: 'outage', times: text === '' ? 1 : whole('outage [TIMES]', text, 1000) }),
  helper: readHelper,
  'helper&': readHelper,
  join: readJoin,
  stop: ({ text }) => (text === '' ? { verb: 'stop' } : malformed('stop alone on its line', `stop ${text}`)),
}

const isAbsent = (verb: string): verb is AbsentVerb => Object.hasOwn(ABSENT, verb)

/** Verbs under which a line that begins with `|` makes no sense. */
export const LINELESS: ReadonlySet<string> = new Set([
  'todo', 'read', 'list', 'delete', 'image', 'move', 'run', 'permit', 'wait', 'mode', 'usage', 'refuse', 'outage',
  'stop', 'join',
])

/** Whether a word is a verb of the language. */
export const isVerb = (word: string): boolean => word === 'repeat' || Object.hasOwn(READERS, word) || isAbsent(word)

/** The command a verb and its argument make; throws `Malformed`. */
export const read = (verb: string, argument: Argument): Action => {
  const reader = Object.hasOwn(READERS, verb) ? READERS[verb]! : undefined
  if (reader) return reader(argument, verb)
  return isAbsent(verb) ? { verb: 'absent', name: verb, text: argument.text } : malformed('a command', verb)
}
