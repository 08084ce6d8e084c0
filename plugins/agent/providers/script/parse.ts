import { Malformed } from './argument.js'
import type { ScriptCommand, ScriptVerb } from './verb.js'
import { verbs } from './verbs.js'

/** What the words of a turn are to the provider `script`. */
export type Parsed =
  | { readonly kind: 'script'; readonly commands: readonly ScriptCommand[] }
  | { readonly kind: 'plain' }
  | { readonly kind: 'slash'; readonly name: string }
  | { readonly kind: 'syntax'; readonly line: number; readonly message: string }

const MOST_REPEATS = 10_000
/** What follows is the payload of an event, which may be anybody's words: none of it is a command. */
const PAYLOAD = '--- Event payload ---'
const SLASH = /^\/([a-zA-Z][\w-]*)(?=\s|$)/
const VERB = /^([a-z]+[*&]?)(?=\s|$)/

interface Draft {
  readonly line: number
  readonly name: string
  readonly verb: ScriptVerb
  readonly text: string
  readonly times?: number
  readonly lines: string[]
}

/** Reads the words of a turn: a script, plain words, a shortcut such as `/help`, or the line that does not parse. */
export const parse = (words: string): Parsed => {
  const drafts: Draft[] = []
  const rows = words.split('\n')
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at]!.endsWith('\r') ? rows[at]!.slice(0, -1) : rows[at]!
    if (row === '---' || row === PAYLOAD || row.startsWith('##')) break
    if (row.startsWith('#') || row.trim() === '') continue
    const above = drafts.at(-1)
    if (above && row.startsWith('|')) {
      if (above.verb.lineless) return wrong(at + 1, `${above.name} takes no lines that begin with |`)
      above.lines.push(row.slice(row.startsWith('| ') ? 2 : 1))
      continue
    }
    const name = VERB.exec(row)?.[1]
    const known = name !== undefined && (name === 'repeat' || verbs.has(name))
    if (!above && !known) return first(row)
    if (!known) return wrong(at + 1, `expected a command, found "${shown(row)}"`)
    const draft = drafted(at + 1, name, row.slice(name.length).trim())
    if (typeof draft === 'string') return wrong(at + 1, draft)
    drafts.push(draft)
  }
  if (drafts.length === 0) return { kind: 'plain' }
  return finished(drafts)
}

const first = (row: string): Parsed => {
  const name = SLASH.exec(row)?.[1]
  return name === undefined ? { kind: 'plain' } : { kind: 'slash', name }
}

const drafted = (line: number, name: string, text: string): Draft | string => {
  const plain = verbs.get(name)
  if (plain) return { line, name, verb: plain, text, lines: [] }
  const [, count, inner = ''] = /^(\d{1,9})\s+([a-z]+[*&]?)(?=\s|$)/.exec(text) ?? []
  const verb = verbs.get(inner)
  if (count === undefined || (!verb && inner !== 'repeat')) {
    return `expected repeat N COMMAND, found "repeat ${shown(text)}"`
  }
  if (Number(count) < 1 || Number(count) > MOST_REPEATS) {
    return `expected a count from 1 to ${MOST_REPEATS}, found ${count}`
  }
  if (!verb) return 'repeat takes a command, found another repeat'
  const rest = text.slice(count.length).trimStart().slice(inner.length).trim()
  return { line, name: inner, verb, text: rest, times: Number(count), lines: [] }
}

const finished = (drafts: readonly Draft[]): Parsed => {
  const commands: ScriptCommand[] = []
  for (const { line, name, verb, text, lines, times } of drafts) {
    try {
      commands.push({ line, name, verb, input: verb.read({ text, lines }), ...(times !== undefined && { times }) })
    } catch (error) {
      if (error instanceof Malformed) return wrong(line, error.message)
      throw error
    }
  }
  return { kind: 'script', commands }
}

const wrong = (line: number, message: string): Parsed => ({ kind: 'syntax', line, message })

const shown = (text: string): string => (text.length > 60 ? `${text.slice(0, 60)}…` : text)
