import type { Routed } from '../../client.js'
import type { CliTable, CliVerb } from '../../cli-table.js'
import { connected } from '../daemon/connection.js'
import { SELF } from '../terminal/own-name.js'
import { quoted } from '../terminal/text.js'
import { CONNECTION, type Flag, misused, type Verb } from '../verb.js'
import { answerLines, eventLine } from './answer.js'
import { didOf } from './did.js'
import { failuresOf } from './failures.js'
import { flagName, inputOf, isNeeded, isOwnFlag, isSecret, placedOf, usageOf } from './input.js'
import { hyphenated, type Field } from './operation.js'
import { printAnswer } from './print.js'
import { bareOf, type GroupCommand, verbFor } from './tables.js'

/** Makes a call of the document a verb of the command line, as the table of its group says. */
export const commandOf = (command: GroupCommand): Verb => {
  const { operation, verb, name } = command
  const { group, summary, description, fields, takesBytes } = operation
  const placed = placedOf(fields, verb)
  const label = `${group} ${name}`
  return {
    name: label,
    usage: [usageOf(operation, verb), ...(fields.some(field => !placed.includes(field)) ? ['[OPTIONS]'] : [])]
      .filter(Boolean)
      .join(' '),
    summary: `${summary}.`,
    examples: examplesOf(command, placed),
    notes: [
      ...description
        .split('\n\n')
        .map(paragraph => paragraph.replaceAll('\n', ' '))
        .filter(Boolean),
      ...(fields.length > placed.length
        ? ['Each field may also be given as KEY=VALUE, KEY:=JSON or KEY=@FILE, - for standard input.']
        : []),
      ...fields
        .filter(isSecret)
        .map(({ name: field }) => `${field} is a secret: give it as ${field}=@FILE or ${field}=@-.`),
      `It is the call ${operation.call}.`,
    ],
    flags: { ...flagsOf(fields, placed, verb), ...CONNECTION },
    least: 0,
    most: Infinity,
    run: async (terminal, given) => {
      if (takesBytes)
        misused(
          `${label} takes a file, which this command cannot send: use a verb of ${SELF} --help, or the `
            + `HTTP call ${operation.call}`,
        )
      const input = await inputOf(terminal, given, command)
      const words = verbFor(command, input)
      const shown = {
        ...(words && { verb: words }),
        ...{ input, width: terminal.width, now: Date.now(), self: SELF },
        did: didOf(
          name,
          placed.map(field => input[field.name]),
        ),
      }
      const failures = await failuresOf(terminal, [group, operation.call])
      return connected(terminal, given, async ({ client }) =>
        printAnswer(
          terminal,
          given,
          await client.call(operation.call as Routed, input as never, {
            signal: terminal.signal,
            ...(words?.once && { once: true }),
          }),
          {
            lines: answer => answerLines(answer, shown),
            event: event => eventLine(event, shown),
            failures,
            saysDone: words?.done !== undefined,
          },
        ),
      )
    },
  }
}

/** A group of the document as a verb: its help lists its calls. */
export const groupCommand = (group: string, commands: readonly GroupCommand[], table: CliTable | undefined): Verb => {
  const bare = bareOf(commands, table)
  const listed = commands.filter(({ hidden }) => !hidden)
  const examples = listed.flatMap(({ name, verb }) =>
    (verb?.examples ?? []).map(example => `${group} ${name} ${example}`),
  )
  const [first = group, ...others] = examples
  return {
    name: group,
    usage: bare ? '[VERB] [ARGUMENTS] [OPTIONS]' : 'VERB [ARGUMENTS] [OPTIONS]',
    summary: bare ? `Without a verb: ${sentenceOf(bare.operation.summary)}.` : `The verbs of group ${group}.`,
    calls: listed.map(({ name, operation, verb }) => [
      `${name} ${usageOf(operation, verb)}`.trimEnd(),
      `${operation.summary}.`,
    ]),
    notes: [`${SELF} ${group} VERB --help says more about one of them.`],
    examples: bare ? ([group, ...examples].map(each => each.trim()) as [string, ...string[]]) : [first, ...others],
    flags: CONNECTION,
    run: async () => misused(`expected a verb of ${group}; ${SELF} ${group} --help lists them`),
  }
}

const sentenceOf = (summary: string): string => summary.charAt(0).toLowerCase() + summary.slice(1)

/** A flag for every field that is not a secret; those of fields that are given by place are not listed. */
const flagsOf = (fields: readonly Field[], placed: readonly Field[], verb: CliVerb | undefined): Verb['flags'] =>
  Object.fromEntries(
    fields
      .filter(field => !isSecret(field) && !isOwnFlag(field, verb) && !(field.inPath && placed.includes(field)))
      .flatMap(field => {
        const name = flagName(field, verb)
        const flag = flagOf(field, verb)
        const hidden = placed.includes(field) ? { hidden: true as const } : {}
        return [
          // The field's own name, too, if the table gives it another.
          [hyphenated(field.name), { ...flag, hidden: true as const }] as const,
          [name, { ...flag, ...hidden }] as const,
          ...(field.kind === 'switch' ? [[`no-${name}`, { help: `not ${name}`, hidden: true as const }] as const] : []),
        ]
      }),
  )

const VALUES = { text: 'TEXT', number: 'NUMBER', time: 'TIME', json: 'JSON' } as const

const flagOf = (field: Field, verb: CliVerb | undefined): Flag => {
  const { kind, many, choices, help } = field
  const own = verb?.flags?.[field.name]
  const value = own?.value ?? (kind === 'switch' ? undefined : VALUES[kind])
  return {
    ...(value !== undefined && { value }),
    ...(many && { multiple: true as const }),
    ...(choices && !own?.of && { choices }),
    help: [
      own?.help ?? (help || (choices ? `one of ${choices.join(', ')}` : '')),
      ...(isNeeded(field, verb) ? ['required'] : []),
    ]
      .filter(Boolean)
      .join('; '),
  }
}

const examplesOf = ({ operation, verb, name }: GroupCommand, placed: readonly Field[]): [string, ...string[]] => {
  const { group } = operation
  const [first, ...others] = (verb?.examples ?? []).map(example => `${group} ${name} ${example}`.trim())
  return first === undefined ? [exampleOf(`${group} ${name}`, placed)] : [first, ...others]
}

const exampleOf = (label: string, placed: readonly Field[]): string =>
  [
    label,
    ...placed.map(({ name: field, kind, choices }) => {
      if (choices) return choices[0]!
      return kind === 'number' ? '1' : quoted(field === 'id' || field === 'conversationId' ? 'c-1' : field)
    }),
  ].join(' ')
