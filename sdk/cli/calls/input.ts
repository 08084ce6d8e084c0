import type { CliInput, CliVerb } from '../../cli-table.js'
import { namesSecret } from '../../node/access/redact.js'
import { inputText } from '../terminal/input.js'
import { SELF } from '../terminal/own-name.js'
import { counted, plain } from '../terminal/text.js'
import { pointOf } from '../terminal/when.js'
import { CONNECTION, type GivenArguments, misused, type Terminal } from '../verb.js'
import { hyphenated, type Field, type Operation } from './operation.js'
import type { GroupCommand } from './tables.js'

/** The most arguments by place. */
const MOST_PLACED = 2

/** The name of a field's flag. */
export const flagName = ({ name }: Pick<Field, 'name'>, verb?: CliVerb): string =>
  verb?.flags?.[name]?.name ?? (name === 'conversationId' ? 'conversation' : hyphenated(name))

/** Fields whose name collides with an option of every verb are given as KEY=VALUE. */
export const isOwnFlag = (field: Field, verb?: CliVerb): boolean =>
  flagName(field, verb) in CONNECTION || flagName(field, verb) === 'help'

/** Secrets come from a file or standard input, since other users of the machine can see arguments. */
export const isSecret = ({ name, kind }: Field): boolean => kind === 'text' && namesSecret(name)

/** The fields by place: those of the table; else the parts of the path, and the first required ones, two in all. */
export const placedOf = (fields: readonly Field[], verb?: CliVerb): Field[] => {
  if (verb?.args) return verb.args.flatMap(name => fields.find(field => field.name === name) ?? [])
  const inPath = fields.filter(field => field.inPath)
  const others = fields.filter(
    field =>
      !field.inPath && !isSecret(field) && field.required && !field.many && (field.choices || field.kind !== 'json'),
  )
  return [...inPath, ...others.filter(({ kind }) => kind !== 'switch')].slice(0, MOST_PLACED)
}

/** Whether a field must be given: it is required, and the table does not fill it. */
export const isNeeded = ({ name, required }: Pick<Field, 'name' | 'required'>, verb?: CliVerb): boolean =>
  required && verb?.fill?.({})[name] === undefined

/** The arguments that are given by place, as help shows them. */
export const usageOf = ({ fields }: Pick<Operation, 'fields'>, verb?: CliVerb): string =>
  placedOf(fields, verb)
    .map(field => {
      const word = flagName(field, verb).toUpperCase()
      return isNeeded(field, verb) ? word : `[${word}]`
    })
    .join(' ')

/** The input of a call, from arguments, flags and pairs. */
export const inputOf = async (
  terminal: Terminal,
  given: GivenArguments,
  { operation, name, verb }: GroupCommand,
): Promise<CliInput> => {
  const { group, fields } = operation
  const placed = placedOf(fields, verb)
  const label = `${group} ${name}`
  const usage = `${SELF} ${label} ${usageOf(operation, verb)}`.trimEnd()
  const more = `: ${usage}; ${SELF} ${label} --help says more`
  const input: { [field: string]: unknown } = {}
  const pairs = given.args.filter(arg => pairField(fields, arg))
  const places = given.args.filter(arg => !pairField(fields, arg))
  const made = (field: Field, text: string): unknown => verb?.flags?.[field.name]?.of?.(text) ?? valueOf(field, text)
  const ofFlag = (name: string) => [given.text(name) ?? [], given.all(name)].flat()
  /** What flags say: the one of the table, and that of the field's own name. */
  const flagged = (field: Field): unknown[] => {
    const [flag, own] = [flagName(field, verb), hyphenated(field.name)]
    return [
      ...ofFlag(flag).map(text => made(field, text)),
      ...(own === flag ? [] : ofFlag(own).map(text => valueOf(field, text))),
    ]
  }
  const open = placed.filter(
    field => !pairs.some(pair => pairField(fields, pair) === field) && flagged(field).length === 0,
  )
  if (places.length > open.length && !open.at(-1)?.many)
    misused(
      `${label}: expected ${open.length === 0 ? 'no arguments' : counted(open.length, 'argument')}, `
        + `found ${places.length}${more}`,
    )
  for (const [at, field] of open.entries()) {
    const those = field.many ? places.slice(at) : places.slice(at, at + 1)
    if (those.length > 0) input[field.name] = field.many ? those.map(text => made(field, text)) : made(field, those[0]!)
  }
  for (const field of fields.filter(each => !isSecret(each))) {
    const flag = flagName(field, verb)
    if (given.on(flag)) input[field.name] = true
    else if (given.on(`no-${flag}`)) input[field.name] = false
    else if (flagged(field).length > 0) input[field.name] = field.many ? flagged(field) : flagged(field)[0]
  }
  for (const pair of pairs) {
    const field = pairField(fields, pair)!
    const value = await pairValue(terminal, field, pair)
    const before = input[field.name]
    input[field.name] = Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value
  }
  const filled = verb?.fill ? { ...verb.fill(input), ...input } : input
  const missing = fields.filter(field => field.required && filled[field.name] === undefined)
  if (missing.length)
    misused(
      `${label}: expected ${missing.map(field => missingWord(field, placed, verb)).join(', ')}, found nothing${more}`,
    )
  return filled
}

const missingWord = (field: Field, placed: readonly Field[], verb: CliVerb | undefined): string => {
  if (isSecret(field)) return `${field.name}=@FILE`
  if (isOwnFlag(field, verb)) return `${field.name}=VALUE`
  return placed.includes(field) ? flagName(field, verb).toUpperCase() : `--${flagName(field, verb)}`
}

const PAIR = /^([A-Za-z][\w-]*)(:=|=@|=)(.*)$/s

/** The field of a KEY=VALUE argument; undefined if KEY is not a field. */
const pairField = (fields: readonly Field[], arg: string): Field | undefined => {
  const key = PAIR.exec(arg)?.[1]
  return fields.find(({ name }) => name === key || hyphenated(name) === key)
}

const pairValue = async (terminal: Terminal, field: Field, pair: string): Promise<unknown> => {
  const { name, many } = field
  const [, , form, text = ''] = PAIR.exec(pair)!
  if (isSecret(field) && form !== '=@')
    misused(
      `other users of this machine can see arguments: give ${name} as ${name}=@FILE, or ${name}=@- for `
        + 'standard input',
    )
  if (form === ':=') return jsonOf(field, text)
  const value = valueOf(field, form === '=@' ? await inputText(terminal, text, name) : text)
  return many ? [value] : value
}

const SWITCH: { readonly [word: string]: boolean } = {
  true: true,
  yes: true,
  on: true,
  false: false,
  no: false,
  off: false,
}

const valueOf = (field: Field, text: string): unknown => {
  const { name, kind } = field
  if (kind === 'text') return text
  if (kind === 'json') return jsonOf(field, text)
  if (kind === 'switch') return SWITCH[text] ?? expected(name, 'on or off', text)
  if (text.trim() !== '' && Number.isFinite(Number(text))) return Number(text)
  return kind === 'time' ? pointOf(text, name, Date.now()) : expected(name, 'a number', text)
}

const jsonOf = ({ name, choices }: Field, text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return expected(name, choices ? `one of ${choices.join(', ')}` : 'JSON', text)
  }
}

const expected = (name: string, what: string, found: string): never =>
  misused(`${name}: expected ${what}, found ${plain(found.slice(0, 80))}`)
