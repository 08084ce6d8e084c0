import { asMeant } from '../../tool-inputs/as-meant.js'
import { shortText } from '../../outputs/head-and-tail.js'
import type { AnswerEntry, CallPart, KeptFacts, KeptItem, KeptWords, SessionEntry } from './session.js'

export const NOTHING_KEPT: KeptFacts = { words: [], decisions: [], files: [] }

const MOST_FILES = 40
/** Results that decide something: they are never left out of a session. */
export const DECIDING: ReadonlySet<string> = new Set(['Ask', 'Plan', 'Todo'])
const OPENING = new Set(['Read', 'Write', 'Edit', 'Append', 'Patch'])
const REFUSED = /^a person said no/

const fieldOf = (input: CallPart['input'], name: string): string | undefined => {
  const value = input?.[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

const itemsOf = (input: CallPart['input']): readonly KeptItem[] | undefined => {
  const { items } = asMeant('Todo', input ?? {}, []) as { items?: unknown }
  if (!Array.isArray(items)) return undefined
  return items.flatMap((item: unknown) => {
    const { content, status } = (item ?? {}) as { content?: unknown; status?: unknown }
    return typeof content === 'string' && typeof status === 'string' ? [{ content, status }] : []
  })
}

/** The calls of answers by their ids. */
const callsOf = (entries: readonly SessionEntry[]): ReadonlyMap<string, CallPart> =>
  new Map(
    entries
      .filter((entry): entry is AnswerEntry => entry.kind === 'answer')
      .flatMap(({ parts }) => parts.flatMap(part => (part.kind === 'call' ? [[part.frame, part] as const] : []))),
  )

/** What of entries is to be kept word for word. */
export const keptIn = (entries: readonly SessionEntry[]): KeptFacts => {
  const calls = callsOf(entries)
  let { plan, todos }: Pick<KeptFacts, 'plan' | 'todos'> = {}
  const [words, decisions, files]: [KeptWords[], string[], Set<string>] = [[], [], new Set()]
  for (const entry of entries) {
    if (entry.kind === 'summary') {
      const before = entry.kept ?? NOTHING_KEPT
      words.push(...before.words)
      decisions.push(...before.decisions)
      for (const file of before.files) files.add(file)
      plan = before.plan ?? plan
      todos = before.todos ?? todos
    } else if (entry.kind === 'words' && entry.by !== 'sandbox') {
      const { run, said, text, pictures } = entry
      words.push({ run, text: said ?? text, ...(pictures && { pictures }) })
    } else if (entry.kind === 'result') {
      const call = calls.get(entry.frame)
      if (!call) continue
      const { name, input } = call
      const path = fieldOf(input, 'path')
      if (name === 'Todo' && entry.ok) todos = itemsOf(input) ?? todos
      else if (name === 'Plan') plan = planOf(input, entry.text) ?? plan
      else if (name === 'Ask') decisions.push(entry.text)
      else if (!entry.ok && REFUSED.test(entry.text))
        decisions.push(`${name} ${path ?? fieldOf(input, 'command') ?? ''}: ${entry.text}`)
      else if (entry.ok) opened(files, name, input, path)
    }
  }
  return {
    ...{ words, decisions, files: [...files].slice(-MOST_FILES) },
    ...(plan && { plan }),
    ...(todos && { todos }),
  }
}

/** A plan and what was said to it; undefined: the call showed none. */
const planOf = (input: CallPart['input'], said: string): KeptFacts['plan'] => {
  const text = fieldOf(input, 'text')
  return text === undefined ? undefined : { text, said }
}

const opened = (files: Set<string>, name: string, input: CallPart['input'], path: string | undefined): void => {
  const [from, to] = [fieldOf(input, 'from'), fieldOf(input, 'to')]
  if (name === 'Delete' && path !== undefined) files.delete(path)
  if (name === 'Move' && from !== undefined && to !== undefined) {
    files.delete(from)
    files.add(to)
  }
  if (!OPENING.has(name) || path === undefined) return
  files.delete(path)
  files.add(path)
}

/** What fits of what is kept, and how much does not. */
export interface FittedKept {
  readonly kept: KeptFacts
  /** Earlier words that are there in part, and those that are not there any more. */
  readonly cut: number
  readonly gone: number
  /** Decisions that are there in part or not at all. */
  readonly undecided: number
  readonly planCut: boolean
}

/** The newest words of the present request that are kept whole, besides its first. */
const NEWEST = 5
const SHORTENED = 1_200
const BRIEFLY = 400

/** Whether words are of the present request: those that began it, and the newest that were added. */
const presentOf = (words: readonly KeptWords[], run: string | undefined): ReadonlySet<KeptWords> => {
  const own = words.filter(each => each.run === run)
  return new Set([...own.slice(0, 1), ...own.slice(-NEWEST)])
}

/**
 * Fits what is kept into a number of characters. The present request, the run `run`, stays whole; of earlier words the
 * first and the newest stay whole as far as they fit.
 */
export const fitted = (kept: KeptFacts, characters: number, run: string | undefined): FittedKept => {
  const present = presentOf(kept.words, run)
  const others = kept.words.filter(each => !present.has(each))
  const order = [...others.slice(0, 1), ...others.slice(1).toReversed()]
  const stay = new Map<KeptWords, string>()
  let [room, cut, gone] = [characters / 2, 0, 0]
  for (const each of order) {
    const forms = [each.text, shortText(each.text, SHORTENED), shortText(each.text, BRIEFLY)]
    const form = forms.find(text => text.length <= room)
    if (form === undefined) {
      gone++
      continue
    }
    if (form !== each.text) cut++
    room -= form.length
    stay.set(each, form)
  }
  const words = kept.words.flatMap(each => {
    if (present.has(each)) return [each]
    const text = stay.get(each)
    return text === undefined ? [] : [{ ...each, text }]
  })
  const most = Math.max(BRIEFLY, characters / 6)
  const decisions = newest(
    kept.decisions.map(text => fittedText(text, most - 1)),
    most,
  )
  const undecided = kept.decisions.filter(text => !decisions.includes(text)).length
  const plan = kept.plan && { ...kept.plan, text: fittedText(kept.plan.text, Math.max(SHORTENED, characters / 4)) }
  const planCut = plan?.text !== kept.plan?.text
  const todos = kept.todos && fittedItems(kept.todos, characters / 6)
  const files = newest(kept.files, Math.max(BRIEFLY, characters / 12))
  const fits = { words, decisions, files, ...(plan && { plan }), ...(todos && { todos }) }
  return { kept: fits, cut, gone, undecided, planCut }
}

/** Room for the line that stands between the beginning and the end of a shortened text. */
const GAP = 120

/** A text of at most so many characters: one that was shortened once is not shortened again. */
const fittedText = (text: string, most: number): string => (text.length <= most ? text : shortText(text, most - GAP))

/** The newest texts that fit. */
const newest = (texts: readonly string[], room: number): readonly string[] => {
  let left = Math.max(BRIEFLY, room)
  const from = texts.findLastIndex(text => (left -= text.length + 1) < 0)
  return texts.slice(from + 1)
}

/** The items of a list that fit: what is done goes first. */
const fittedItems = (items: readonly KeptItem[], room: number): readonly KeptItem[] => {
  const open = items.filter(({ status }) => status !== 'completed')
  const size = items.reduce((sum, { content }) => sum + content.length + 5, 0)
  return size <= Math.max(BRIEFLY, room) ? items : open
}

const DONE = 'What was said and done'
const PRESENT = 'The present request, word for word'

/** The summary in a text of `keptText`, with the titles that its model wrote. */
export const summaryIn = (text: string): string => {
  const [title, next] = [`## ${DONE}\n`, `\n\n## ${PRESENT}\n`]
  const begin = text.indexOf(title)
  if (begin < 0) return ''
  const end = text.lastIndexOf(next)
  return text.slice(begin + title.length, end < begin ? undefined : end)
}

const MARKS: { readonly [status: string]: string } = { pending: ' ', in_progress: '~', completed: 'x' }

const section = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : [`## ${title}\n${lines.join('\n')}`]

/** What is kept as the model reads it, with a summary; `run` is the one whose words are the present request. */
export const keptText = (
  { words, decisions, plan, todos, files }: KeptFacts,
  summary: string,
  run?: string,
): string => {
  const earlier = words.filter(each => each.run !== run)
  const present = words.filter(each => each.run === run)
  return [
    'Earlier messages of this conversation were left out to save room. This is what was kept of them.',
    ...section(
      'What was asked before, word for word',
      earlier.map(({ text }) => `- ${text}`),
    ),
    ...section(
      'What people decided',
      decisions.map(text => `- ${text}`),
    ),
    ...(plan ? [`## The plan (${plan.said})\n${plan.text}`] : []),
    ...section('The todo list', todos?.map(({ content, status }) => `[${MARKS[status] ?? ' '}] ${content}`) ?? []),
    ...section(
      'Files that you worked with, the newest last',
      files.map(path => `- ${path}`),
    ),
    ...(summary.trim() ? [`## ${DONE}\n${summary.trim()}`] : []),
    ...section(
      PRESENT,
      present.map(({ text }) => text),
    ),
  ].join('\n\n')
}
