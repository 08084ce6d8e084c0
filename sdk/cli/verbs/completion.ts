import { printResult } from '../terminal/asked.js'
import { SELF } from '../terminal/own-name.js'
import { plain } from '../terminal/text.js'
import { say } from '../terminal/write.js'
import { CONNECTION, misused, type Verb } from '../verb.js'

/** Prints a shell's completion script, which asks the program what fits. */
export const completion: Verb = {
  name: 'completion',
  usage: 'bash|zsh|fish',
  summary: 'print a script that completes verbs, options and ids in your shell',
  examples: [
    'completion bash > ~/.local/share/bash-completion/completions/sandbox',
    'completion zsh > ~/.zfunc/_sandbox',
    'completion fish > ~/.config/fish/completions/sandbox.fish',
  ],
  notes: [
    'In zsh the folder must be in fpath before compinit runs. It completes the name sandbox, as an installed '
      + 'program has it.',
    'Conversations, secrets and other ids come from the running daemon, for which it waits at most 300 ms.',
  ],
  flags: { json: CONNECTION.json! },
  least: 1,
  most: 1,
  run: async (terminal, given) => {
    const [shell = ''] = given.args
    const script = Object.hasOwn(SCRIPTS, shell)
      ? SCRIPTS[shell]!
      : misused(`expected completion bash, zsh or fish, found ${plain(shell)}`)
    if (SELF !== 'sandbox' && !given.on('json'))
      say(terminal, `it completes the command sandbox: ${SELF} link makes it\n`)
    return printResult(terminal, given, { shell, script }, made => made.script.trimEnd())
  },
}

/** The first words of a verb, from its usage: `[list | back|forward NAME]` has list, back and forward. */
export const wordsOf = ({ usage }: Pick<Verb, 'usage'>): string[] =>
  usage
    .split(/ \| |\[/)
    .flatMap(form => /^\S*/.exec(form.trim())![0].replace(/\]$/, '').split('|'))
    .filter(word => /^[a-z][a-z-]*$/.test(word))

/** The word that says: names of files fit here, too. */
export const FILES_FIT = ':files'

// Each line of `__complete` is a word, a tab and what it is. Of bash, a word with a colon is one word only here.
const SCRIPTS: { readonly [shell: string]: string } = {
  bash: `# bash completion of sandbox
_sandbox() {
  local cur=\${COMP_WORDS[COMP_CWORD]} line word about files=''
  local -a words=()
  COMPREPLY=()
  while IFS=$'\\t' read -r word about; do
    if [ "$word" = ${FILES_FIT} ]; then files=1; elif [ -n "$word" ]; then words+=("$word"); fi
  done < <("\${COMP_WORDS[0]}" __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  for word in "\${words[@]}"; do
    if [[ $word == "$cur"* ]]; then COMPREPLY+=("$(printf '%q' "$word")"); fi
  done
  if [ -n "$files" ]; then
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur")
    compopt -o filenames 2>/dev/null
  fi
  return 0
}
complete -F _sandbox sandbox
`,
  zsh: `#compdef sandbox
_sandbox() {
  local -a found words_behind
  local line word about files=''
  words_behind=("\${(@)words[2,CURRENT]}")
  while IFS= read -r line; do
    word=\${line%%$'\\t'*}
    about=\${line#*$'\\t'}
    if [ "$word" = ${FILES_FIT} ]; then files=1
    elif [ -n "$word" ]; then found+=("\${word//:/\\\\:}:$about"); fi
  done < <("$words[1]" __complete "\${(@)words_behind}" 2>/dev/null)
  if (( $#found )); then _describe -V sandbox found; fi
  if [ -n "$files" ]; then _files; fi
}
if [ "$funcstack[1]" = _sandbox ]; then _sandbox "$@"; else compdef _sandbox sandbox; fi
`,
  fish: `# fish completion of sandbox
function __sandbox_complete
  set -l words (commandline -opc)
  set -l last (commandline -ct)
  set -l found ($words[1] __complete $words[2..-1] "$last" 2>/dev/null)
  for line in $found
    if test "$line" = "${FILES_FIT}"
      __fish_complete_path "$last"
    else
      echo $line
    end
  end
end
complete -c sandbox -f -a '(__sandbox_complete)'
`,
}
