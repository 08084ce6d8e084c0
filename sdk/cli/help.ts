import { SELF } from './terminal/own-name.js'
import { EXIT_CODES } from './exit-codes.js'
import { wrapped } from './terminal/text.js'
import type { Flag, Verb } from './verb.js'

/** With fewer columns than this, an explanation goes on separate lines. */
const BESIDE = 24

/** The help of the program, wrapped to a width; default: no wrapping. */
export const programHelp = (verbs: readonly Verb[], width = Infinity): string =>
  [
    ...wrapped('sandbox: the daemon coding agents run behind, and its client', width),
    '',
    ...wrapped(`usage: ${SELF} VERB [ARGUMENTS] [OPTIONS]`, width),
    '',
    ...aligned(
      verbs.map(({ name, summary }) => [name, summary]),
      width,
    ),
    '',
    ...wrapped(`${SELF} VERB --help says more about one of them; --version prints the version.`, width),
    ...wrapped(`Every call of the daemon is a command too, ${SELF} GROUP CALL: ${SELF} calls lists them.`, width),
    '',
    ...wrapped(
      'The daemon is the one named by --url, else the one whose workspace contains the current folder, else the only '
        + 'one running.',
      width,
    ),
    ...wrapped(
      'Its owner needs no credential on the machine it runs on; elsewhere a control token in SANDBOX_TOKEN.',
      width,
    ),
    '',
    ...wrapped(
      'To upgrade: git pull && npm ci in a clone, else npm install --global FILE with a newer package; daemons use it '
        + `after their next start. ${SELF} uninstall removes everything.`,
      width,
    ),
    '',
    ...wrapped(`${SELF} help exit-codes says what the exit codes mean.`, width),
  ].join('\n')

/** What the exit codes mean. */
export const exitCodesHelp = (width = Infinity): string =>
  [
    ...wrapped('Every verb ends with one of these exit codes:', width),
    '',
    ...aligned(EXIT_CODES, width),
    '',
    ...wrapped(`${SELF} terminal passes on the exit code of its shell, ${SELF} serve that of the daemon.`, width),
    ...wrapped('With --json a failure is one JSON line on standard error: {"message": …, "reason": …}.', width),
  ].join('\n')

/** The help of a verb, with examples. */
export const verbHelp = (
  { name, usage, summary, examples, notes = [], calls = [], flags, group }: Verb,
  width = Infinity,
): string =>
  [
    ...wrapped(`usage: ${SELF} ${name} ${usage}`.trimEnd(), width),
    '',
    ...wrapped(summary, width),
    ...(calls.length ? ['', ...aligned(calls, width)] : []),
    ...(notes.length ? ['', ...notes.flatMap(note => wrapped(note, width))] : []),
    ...(group ? ['', ...wrapped(`It is also a group of calls: ${SELF} calls ${group} lists them.`, width)] : []),
    ...(Object.keys(flags).length
      ? [
          '',
          ...aligned(
            shownOf(flags).map(([flag, its]) => [optionOf(flag, its), its.help]),
            width,
          ),
        ]
      : []),
    '',
    'examples:',
    ...examples.map(example => `  ${SELF} ${example}`),
  ].join('\n')

const shownOf = (flags: Verb['flags']): [name: string, flag: Flag][] =>
  Object.entries(flags).filter(([, { hidden }]) => !hidden)

const optionOf = (name: string, { value, multiple, short }: Flag): string =>
  `${short ? `-${short}, ` : ''}--${name}${value ? ` ${value}` : ''}${multiple ? ' …' : ''}`

const aligned = (rows: readonly (readonly [left: string, right: string])[], width: number): string[] => {
  const widest = Math.max(...rows.map(([left]) => left.length))
  const room = width - widest - 4
  if (room < BESIDE)
    return rows.flatMap(([left, right]) => [`  ${left}`, ...wrapped(right, width - 6).map(line => `      ${line}`)])
  return rows.flatMap(([left, right]) =>
    wrapped(right, room).map((line, at) => `  ${(at === 0 ? left : '').padEnd(widest)}  ${line}`),
  )
}
