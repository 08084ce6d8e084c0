import { parseArgs } from 'node:util'
import { didYouMean } from './terminal/did-you-mean.js'
import { SELF } from './terminal/own-name.js'
import { plain } from './terminal/text.js'
import { CONNECTION, type GivenArguments, misused, type Verb } from './verb.js'

/** The option of every verb that an argument names. */
export const connectionFlag = (arg: string | undefined) =>
  arg?.startsWith('--') ? CONNECTION[arg.slice(2).split('=')[0]!] : undefined

/** The first word that is not an option of every verb, or undefined before any other option. */
export const firstWord = (args: readonly string[]): string | undefined => {
  for (let at = 0; at < args.length; at++) {
    const flag = connectionFlag(args[at])
    if (!flag) return args[at]!.startsWith('-') ? undefined : args[at]
    if (flag.value !== undefined && !args[at]!.includes('=')) at++
  }
  return undefined
}

/** The arguments without the first occurrence of a word. */
export const withoutWord = (args: readonly string[], word: string): readonly string[] =>
  args.toSpliced(args.indexOf(word), 1)

/** Moves options before the verb behind it. */
export const verbFirst = (args: readonly string[]): readonly string[] => {
  let at = 0
  for (let flag = connectionFlag(args[at]); flag; flag = connectionFlag(args[at]))
    at += flag.value === undefined || args[at]!.includes('=') ? 1 : 2
  return at > 0 && at < args.length ? [args[at]!, ...args.slice(0, at), ...args.slice(at + 1)] : args
}

/** Only the options of every verb, with their values. */
export const connectionArgs = (args: readonly string[]): readonly string[] =>
  args.filter((arg, at) => connectionFlag(arg) || connectionFlag(args[at - 1])?.value !== undefined)

/** Whether failures are printed as JSON. */
export const wantsJson = (args: readonly string[]): boolean => {
  const end = args.indexOf('--')
  return (end < 0 ? args : args.slice(0, end)).includes('--json')
}

/** Refuses secrets as arguments, which other users of the machine can see. */
const refuseSecrets = (verb: Verb, args: readonly string[]): void => {
  const end = args.indexOf('--')
  const given = (end < 0 ? args : args.slice(0, end)).some(arg => /^--token(=|$)/.test(arg))
  if (given && 'token-file' in verb.flags) {
    misused(
      `${verb.name}: other users of this machine can see arguments: put the token into SANDBOX_TOKEN, or into `
        + 'a file for --token-file FILE (- is standard input)',
    )
  }
}

/** Parses the arguments of a verb. */
export const parsed = (verb: Verb, args: readonly string[]): GivenArguments => {
  refuseSecrets(verb, args)
  const options = Object.fromEntries(
    Object.entries({ ...verb.flags, help: { help: '', short: 'h' } }).map(([name, flag]) => [
      name,
      {
        type: 'value' in flag ? ('string' as const) : ('boolean' as const),
        multiple: 'multiple' in flag,
        ...('short' in flag && { short: flag.short! }),
      },
    ]),
  )
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true })
    return {
      args: positionals,
      on: flag => values[flag] === true,
      text: flag => (typeof values[flag] === 'string' ? values[flag] : undefined),
      all: flag => (Array.isArray(values[flag]) ? values[flag].map(String) : []),
    }
  } catch (error) {
    const [sentence = ''] = (error as Error).message.split('. ')
    const [, unknown] = /^Unknown option '--([^']*)'/.exec(sentence) ?? []
    const meant = unknown === undefined ? '' : didYouMean(unknown, shownFlags(verb), '--')
    return misused(
      `${verb.name}: ${plain(sentence.charAt(0).toLowerCase() + sentence.slice(1)).replace(/\.$/, '')}${meant}`,
    )
  }
}

/** The names of the options that help lists. */
export const shownFlags = ({ flags }: Pick<Verb, 'flags'>): string[] => [
  ...Object.entries(flags)
    .filter(([, { hidden }]) => !hidden)
    .map(([name]) => name),
  'help',
]

/** Refuses too few and too many arguments. */
export const checked = (verb: Verb, given: GivenArguments): GivenArguments => {
  const { least = 0, most = 0 } = verb
  const found = given.args.length
  if (found < least || found > most)
    misused(`expected sandbox ${verb.name} ${verb.usage}`.trimEnd() + `; ${SELF} ${verb.name} --help says more`)
  return given
}
