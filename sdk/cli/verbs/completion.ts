import { printResult } from '../terminal/asked.js'
import { plain } from '../terminal/text.js'
import { CONNECTION, type Flag, misused, type Verb } from '../verb.js'

/** Prints a shell's completion script, generated from the verbs. */
export const completion = (verbs: () => readonly Verb[]): Verb => ({
  name: 'completion',
  usage: 'bash|zsh|fish',
  summary: 'print a script that completes verbs and options in your shell',
  examples: [
    'completion bash > ~/.local/share/bash-completion/completions/sandbox',
    'completion zsh > ~/.zfunc/_sandbox',
    'completion fish > ~/.config/fish/completions/sandbox.fish',
  ],
  notes: [
    'In zsh the folder must be in fpath before compinit runs. It completes the name sandbox, as an installed '
      + 'program has it,',
    'and asks the running daemon for the names of its calls.',
  ],
  flags: { json: CONNECTION.json! },
  least: 1,
  most: 1,
  run: async (terminal, given) => {
    const [shell = ''] = given.args
    const script = Object.hasOwn(SCRIPTS, shell)
      ? SCRIPTS[shell]!
      : misused(`expected completion bash, zsh or fish, found ${plain(shell)}`)
    return printResult(terminal, given, { shell, script: script(verbs()) }, made => made.script.trimEnd())
  },
})

/** The first words of a verb, from its usage: `[list | back|forward NAME]` has list, back and forward. */
export const wordsOf = ({ usage }: Pick<Verb, 'usage'>): string[] =>
  usage
    .split(/ \| |\[/)
    .flatMap(form => /^\S*/.exec(form.trim())![0].replace(/\]$/, '').split('|'))
    .filter(word => /^[a-z][a-z-]*$/.test(word))

const isPath = ({ value }: Flag): boolean => value === 'FILE' || value === 'DIR'

const flagsOf = (flags: Verb['flags']): string[] => Object.keys(flags).map(flag => `--${flag}`)

/** Escapes text for a single-quoted shell word. */
const inQuotes = (text: string): string => text.replaceAll("'", "'\\''")

/** Asks the running daemon for the names of a group's calls; prints none without a daemon. */
const CALLS_OF = 'sandbox 2>/dev/null calls --names'

const bash = (verbs: readonly Verb[]): string => {
  const before = Object.entries(CONNECTION)
    .filter(([, { value }]) => value)
    .map(([flag]) => `--${flag}`)
    .join('|')
  const values = verbs.flatMap(({ name, flags }) =>
    Object.entries(flags).flatMap(([flag, { choices }]) =>
      choices ? [`    '${name} --${flag}') words='${choices.join(' ')}' ;;`] : [],
    ),
  )
  const paths = [
    ...new Set(
      verbs.flatMap(({ flags }) =>
        Object.entries(flags).flatMap(([flag, its]) => (isPath(its) ? [`*' --${flag}'`] : [])),
      ),
    ),
  ]
  const first = [...verbs.map(({ name }) => name), '--help', '--version', ...flagsOf(CONNECTION)]
  const words = verbs.map(verb => {
    const own = [...wordsOf(verb), ...flagsOf(verb.flags), '--help'].join(' ')
    return `      ${verb.name}) words='${own} '${verb.group ? `$(${CALLS_OF} ${verb.name})` : ''} ;;`
  })
  return `# bash completion of sandbox
_sandbox() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} verb='' words='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in
      ${before}) ((i++)) ;;
      -*) ;;
      *) verb=\${COMP_WORDS[i]}; break ;;
    esac
  done
  COMPREPLY=()
  case "$verb $prev" in
    ${paths.join('|')}) return ;;
${values.join('\n')}
  esac
  if [ -z "$words" ]; then
    case "$verb" in
      '') words='${first.join(' ')} '$(${CALLS_OF}) ;;
${words.join('\n')}
      *) words=$(${CALLS_OF} "$verb") ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  return 0
}
complete -o default -F _sandbox sandbox
`
}

const zsh = (verbs: readonly Verb[]): string => {
  const escape = (text: string) => inQuotes(text.replace(/[\\:[\]]/g, '\\$&'))
  const values = (flag: Flag) => (flag.choices ? `(${flag.choices.join(' ')})` : isPath(flag) ? '_files' : ' ')
  const option = (name: string, flag: Flag) => {
    const value = flag.value ? `:${escape(flag.value)}:${values(flag)}` : ''
    return `'${flag.multiple ? '*' : ''}--${name}[${escape(flag.help)}]${value}'`
  }
  const words = (verb: Verb) =>
    verb.group
      ? [`'1:what:{compadd -- ${wordsOf(verb).join(' ')} $(${CALLS_OF} ${verb.name})}'`, "'*:file:_files'"]
      : wordsOf(verb).length
        ? [`'1:what:(${wordsOf(verb).join(' ')})'`, "'*:file:_files'"]
        : ["'*:file:_files'"]
  const argumentsOf = (verb: Verb) => {
    const options = Object.entries(verb.flags).map(([name, flag]) => option(name, flag))
    return `    ${verb.name}) _arguments ${[...options, "'--help[say more]'", ...words(verb)].join(' ')} ;;`
  }
  return `#compdef sandbox
_sandbox() {
  local -a verbs=(
${verbs.map(({ name, summary }) => `    '${name}:${escape(summary)}'`).join('\n')}
  )
  if (( CURRENT == 2 )); then
    verbs+=($(${CALLS_OF}))
    _describe verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  (( CURRENT-- ))
  case $verb in
${verbs.map(argumentsOf).join('\n')}
    *) compadd -- $(${CALLS_OF} $verb) ;;
  esac
}
if [ "$funcstack[1]" = _sandbox ]; then _sandbox "$@"; else compdef _sandbox sandbox; fi
`
}

const fish = (verbs: readonly Verb[]): string => {
  const escape = (text: string) => text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")
  const takes = (flag: Flag) =>
    flag.choices ? ` -x -a '${flag.choices.join(' ')}'` : isPath(flag) ? ' -r -F' : flag.value ? ' -x' : ''
  return [
    '# fish completion of sandbox',
    ...verbs.flatMap(verb => {
      const seen = `complete -c sandbox -n '__fish_seen_subcommand_from ${verb.name}'`
      return [
        `complete -c sandbox -n __fish_use_subcommand -f -a ${verb.name} -d '${escape(verb.summary)}'`,
        ...(wordsOf(verb).length ? [`${seen} -a '${wordsOf(verb).join(' ')}'`] : []),
        ...Object.entries(verb.flags).map(
          ([name, flag]) =>
            `${seen} -l ${name}${flag.short ? ` -s ${flag.short}` : ''}${takes(flag)} -d '${escape(flag.help)}'`,
        ),
      ]
    }),
    `complete -c sandbox -n __fish_use_subcommand -f -a '(${CALLS_OF})'`,
    `complete -c sandbox -n 'test (count (commandline -opc)) -eq 2' -f -a '(${CALLS_OF} (commandline -opc)[2])'`,
    '',
  ].join('\n')
}

const SCRIPTS: { readonly [shell: string]: (verbs: readonly Verb[]) => string } = { bash, zsh, fish }
