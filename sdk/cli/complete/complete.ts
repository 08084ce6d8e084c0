import { connectionFlag, shownFlags } from '../arguments.js'
import { flagName, placedOf } from '../calls/input.js'
import { commandNamed, type GroupCommand, groupsOf } from '../calls/tables.js'
import { commandOf } from '../calls/command.js'
import { CONNECTION, type Flag, type Terminal, type Verb } from '../verb.js'
import { wordsOf } from '../verbs/completion.js'
import { type FittingWord, Known } from './known.js'

/** What may stand at a place: words, or names of files. */
export interface FittingWords {
  readonly words: readonly FittingWord[]
  readonly files?: true
}

const NONE: FittingWords = { words: [] }
const FILES: FittingWords = { words: [], files: true }

const takesFile = ({ value }: Flag): boolean => value === 'FILE' || value === 'DIR'
const texts = (values: Iterable<string>): FittingWord[] => [...values].map(value => ({ value }))
const flagsOf = (verb: Pick<Verb, 'flags'>): FittingWord[] =>
  shownFlags(verb).map(name => ({ value: `--${name}`, about: verb.flags[name]?.help ?? 'say more' }))

/** What fits at the last of some words behind the program's name; what the daemon does not say in time is left out. */
export const candidates = async (
  terminal: Terminal,
  verbs: readonly Verb[],
  words: readonly string[],
): Promise<FittingWords> => {
  const last = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  const known = new Known(terminal, before)
  const places = placesOf(before)
  const [name, ...rest] = places
  const listed = verbs.filter(({ hidden }) => !hidden)
  const verb = verbs.find(each => each.name === name || each.also === name)
  if (name === undefined) return ofFlag(CONNECTION, before.at(-1)) ?? firstWords(terminal, listed, last)
  if (name === 'help') return places.length > 1 ? NONE : firstWords(terminal, listed, '', ['exit-codes'])
  const [word] = rest
  const own = verb && (word === undefined || !verb.group || wordsOf(verb).includes(word))
  if (own) return ofVerb(verb, rest, before.at(-1), last, known)
  const commands = (await known.commands(verb?.group ?? name)) ?? []
  if (word === undefined)
    return last.startsWith('-') ? { words: flagsOf({ flags: CONNECTION }) } : namesOf(commands, await known.names(name))
  const command = commandNamed(commands, word)
  return command ? ofCommand(command, places.slice(2), before.at(-1), last, known) : NONE
}

/** The words that are no options of every verb; values of other options are among them. */
const placesOf = (words: readonly string[]): string[] =>
  words.filter((word, at) => {
    const value = connectionFlag(words[at - 1])?.value !== undefined && !words[at - 1]!.includes('=')
    return !word.startsWith('-') && !value
  })

const firstWords = (terminal: Terminal, verbs: readonly Verb[], last: string, more: string[] = []): FittingWords => {
  if (last.startsWith('-'))
    return { words: [...flagsOf({ flags: CONNECTION }), { value: '--version', about: 'print the version' }] }
  const named = new Set(verbs.map(({ name }) => name))
  return {
    words: [
      ...verbs.map(({ name, summary }) => ({ value: name, about: summary })),
      ...groupsOf(terminal)
        .filter(group => !named.has(group))
        .map(group => ({ value: group, about: `the verbs of group ${group}` })),
      ...texts(more),
    ],
  }
}

const namesOf = (commands: readonly GroupCommand[], names: readonly string[]): FittingWords => ({
  words: commands.length
    ? commands.filter(({ hidden }) => !hidden).map(({ name, operation }) => ({ value: name, about: operation.summary }))
    : texts(names),
})

/** The values of the option before the word; undefined if there is none that takes a value. */
const ofFlag = (flags: Verb['flags'], previous: string | undefined): FittingWords | undefined => {
  const flag = previous?.startsWith('--') ? flags[previous.slice(2)] : undefined
  if (flag?.value === undefined) return undefined
  if (flag.choices) return { words: texts(flag.choices) }
  return takesFile(flag) ? FILES : NONE
}

/** The placeholders of a form of a usage: of `remove` in `[list | remove NAME]`, or of the verb itself. */
const placeholdersOf = ({ usage }: Verb, word: string | undefined): string[] => {
  const forms = usage.split(' | ').map(form => form.replaceAll(/[[\]]/g, '').trim().split(/\s+/))
  const form = forms.find(([first = '']) =>
    word === undefined ? !/^[a-z]/.test(first) : first.split('|').includes(word),
  )
  return (form ?? []).slice(word === undefined ? 0 : 1).filter(part => /^["A-Z]/.test(part))
}

const ofVerb = async (
  verb: Verb,
  rest: readonly string[],
  previous: string | undefined,
  last: string,
  known: Known,
): Promise<FittingWords> => {
  const value = ofFlag(verb.flags, previous)
  if (value) {
    const placeholder = verb.flags[previous!.slice(2)]?.value ?? ''
    const ids = value === NONE ? verb.ids?.[placeholder] : undefined
    return ids ? { words: await known.ids(...ids) } : value
  }
  if (last.startsWith('-')) return { words: flagsOf(verb) }
  const words = wordsOf(verb)
  const [word] = rest
  const inForm = word !== undefined && words.includes(word)
  const placeholders = placeholdersOf(verb, inForm ? word : undefined)
  const at = rest.length - (inForm ? 1 : 0)
  const placeholder = placeholders[at] ?? (placeholders.at(-1)?.endsWith('…') ? placeholders.at(-1) : undefined)
  const ids = placeholder === undefined ? undefined : verb.ids?.[placeholder]
  const named =
    rest.length > 0
      ? []
      : [...texts(words), ...(verb.group ? namesOf((await known.commands(verb.group)) ?? [], []).words : [])]
  const all = [...named, ...(ids ? await known.ids(...ids) : [])]
  if (placeholder !== undefined && /^(?:FILE|DIR|FOLDER)/.test(placeholder)) return { words: all, files: true }
  return { words: all }
}

const ofCommand = async (
  command: GroupCommand,
  rest: readonly string[],
  previous: string | undefined,
  last: string,
  known: Known,
): Promise<FittingWords> => {
  const { operation, verb } = command
  const made = commandOf(command)
  const value = ofFlag(made.flags, previous)
  const named = previous?.startsWith('--')
    ? operation.fields.find(field => flagName(field, verb) === previous.slice(2))
    : undefined
  if (value) return named && value === NONE ? { words: await known.values(command, named) } : value
  if (last.startsWith('-')) return { words: flagsOf(made) }
  const placed = placedOf(operation.fields, verb)
  const field = placed[rest.length] ?? (placed.at(-1)?.many ? placed.at(-1) : undefined)
  if (!field) return NONE
  if (field.choices) return { words: texts(field.choices) }
  if (field.kind === 'switch') return { words: texts(['on', 'off']) }
  return field.name === 'path' ? FILES : { words: await known.values(command, field) }
}
