import type { Routed } from '../../client.js'
import { namesSecret } from '../../node/access/redact.js'
import { connected } from '../daemon/connection.js'
import { inputText } from '../terminal/input.js'
import { SELF } from '../terminal/own-name.js'
import { plain, quoted } from '../terminal/text.js'
import { CONNECTION, type Flag, type GivenArguments, misused, type Terminal, type Verb } from '../verb.js'
import { hyphenated, type Field, type Operation } from './operation.js'
import { printAnswer } from './print.js'

/** Makes a call of the document a verb of the command line. */
export const commandOf = (operation: Operation): Verb => {
  const { group, name, summary, description, fields, takesBytes } = operation
  const placed = placedOf(fields)
  const options = fields.filter(field => !field.inPath && !isOwnFlag(field) && !isSecret(field))
  return {
    name: `${group} ${name}`,
    usage: [
      ...placed.map(field => hyphenated(field.name).toUpperCase()),
      ...(fields.length > placed.length ? ['[KEY=VALUE…]'] : []),
    ].join(' '),
    summary: `${summary}.`,
    examples: [exampleOf(operation, placed)],
    notes: [
      ...description
        .split('\n\n')
        .map(paragraph => paragraph.replaceAll('\n', ' '))
        .filter(Boolean),
      ...(fields.length > placed.length
        ? ['Each field may also be given as KEY=VALUE, KEY:=JSON or KEY=@FILE, - for standard input.']
        : []),
      ...fields.filter(isSecret).map(({ name }) => `${name} is a secret: give it as ${name}=@FILE or ${name}=@-.`),
      `It is the call ${operation.call}.`,
    ],
    flags: { ...Object.fromEntries(options.map(field => [hyphenated(field.name), flagOf(field)])), ...CONNECTION },
    least: 0,
    most: Infinity,
    run: async (terminal, given) => {
      if (takesBytes)
        misused(
          `${group} ${name} takes a file, which this command cannot send: use a verb of ${SELF} --help, or the `
            + `HTTP call ${operation.call}`,
        )
      const input = await inputOf(terminal, given, operation, placed, options)
      return connected(terminal, given, async ({ client }) =>
        printAnswer(
          terminal,
          given,
          await client.call(operation.call as Routed, input as never, { signal: terminal.signal }),
        ),
      )
    },
  }
}

/** A group of the document as a verb: its help lists its calls. */
export const groupCommand = (group: string, operations: readonly Operation[]): Verb => ({
  name: group,
  usage: 'CALL [ARGUMENTS]',
  summary: `make a call of group ${group}`,
  calls: operations.map(({ name, summary }) => [name, `${summary}.`]),
  notes: [`${SELF} ${group} CALL --help says more about one of them.`],
  examples: commandOf(operations[0]!).examples,
  flags: CONNECTION,
  run: async () => misused(`expected a call of ${group}; ${SELF} ${group} --help lists them`),
})

/** Fields whose name collides with an option of every verb are given as KEY=VALUE. */
const isOwnFlag = ({ name }: Field): boolean => hyphenated(name) in CONNECTION || name === 'help'

/** Secrets come from a file or standard input, since other users of the machine can see arguments. */
const isSecret = ({ name, kind }: Field): boolean => kind === 'text' && namesSecret(name)

/** The positional fields: the parts of the path, and the other required fields with a plain value. */
const placedOf = (fields: readonly Field[]): Field[] =>
  fields.filter(
    field =>
      field.inPath
      || (!isSecret(field)
        && field.required
        && !field.many
        && (field.choices || field.kind === 'text' || field.kind === 'number')),
  )

const flagOf = ({ kind, many, choices, required, help }: Field): Flag => ({
  ...(kind !== 'switch' && { value: kind === 'json' ? 'JSON' : kind === 'number' ? 'NUMBER' : 'TEXT' }),
  ...(many && { multiple: true as const }),
  ...(choices && { choices }),
  help: [help || (choices ? `one of ${choices.join(', ')}` : ''), ...(required ? ['required'] : [])]
    .filter(Boolean)
    .join('; '),
})

const exampleOf = ({ group, name }: Operation, placed: readonly Field[]): string =>
  [
    group,
    name,
    ...placed.map(({ name: field, kind }) => (kind === 'number' ? '1' : quoted(field === 'id' ? 'c-1' : field))),
  ].join(' ')

const inputOf = async (
  terminal: Terminal,
  given: GivenArguments,
  { group, name, fields }: Operation,
  placed: readonly Field[],
  options: readonly Field[],
): Promise<{ readonly [field: string]: unknown }> => {
  const input: { [field: string]: unknown } = {}
  const pairs = given.args.filter(arg => pairField(fields, arg))
  const places = given.args.filter(arg => !pairField(fields, arg))
  const open = placed.filter(
    field => !pairs.some(pair => pairField(fields, pair) === field) && given.text(hyphenated(field.name)) === undefined,
  )
  if (places.length > open.length)
    misused(
      `${group} ${name}: expected ${open.length || 'no'} argument${open.length === 1 ? '' : 's'}, `
        + `found ${places.length}; ${SELF} ${group} ${name} --help lists its fields`,
    )
  for (const [at, text] of places.entries()) input[open[at]!.name] = valueOf(open[at]!, text)
  for (const field of options) {
    const flag = hyphenated(field.name)
    if (given.on(flag)) input[field.name] = true
    else if (field.many && given.all(flag).length) input[field.name] = given.all(flag).map(text => valueOf(field, text))
    else if (given.text(flag) !== undefined) input[field.name] = valueOf(field, given.text(flag)!)
  }
  for (const pair of pairs) {
    const field = pairField(fields, pair)!
    const value = await pairValue(terminal, field, pair)
    const before = input[field.name]
    input[field.name] = Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value
  }
  const missing = fields
    .filter(field => field.required && input[field.name] === undefined)
    .map(({ name: field }) => field)
  if (missing.length)
    misused(
      `${group} ${name}: expected ${missing.join(', ')}, found nothing; ${SELF} ${group} ${name} --help lists its `
        + 'fields',
    )
  return input
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

const valueOf = (field: Field, text: string): unknown => {
  const { name, kind } = field
  if (kind === 'text') return text
  if (kind === 'json') return jsonOf(field, text)
  if (kind === 'switch') return text === 'true' || (text === 'false' ? false : expected(name, 'true or false', text))
  return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : expected(name, 'a number', text)
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
