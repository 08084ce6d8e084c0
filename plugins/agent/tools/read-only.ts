interface Word {
  readonly text: string
  /** Contains a glob pattern, which the shell expands to file names. */
  readonly pattern: boolean
}

const ALWAYS = new Set([
  'pwd',
  'ls',
  'cat',
  'head',
  'tail',
  'wc',
  'stat',
  'du',
  'df',
  'grep',
  'diff',
  'cmp',
  'echo',
  'true',
  'false',
  'whoami',
  'id',
  'uname',
  'basename',
  'dirname',
  'realpath',
  'readlink',
])
const GIT = new Set([
  'status',
  'log',
  'diff',
  'show',
  'rev-parse',
  'ls-files',
  'ls-tree',
  'blame',
  'shortlog',
  'describe',
  'merge-base',
  'rev-list',
])

/** The words of a simple command; undefined if it uses any other syntax of the shell. */
const wordsOf = (command: string): Word[] | undefined => {
  const words: Word[] = []
  let [word, pattern, begun, quote] = ['', false, false, '']
  const end = () => {
    if (begun) words.push({ text: word, pattern })
    ;[word, pattern, begun] = ['', false, false]
  }
  for (const character of command.trim()) {
    if (/[$`\\\0\r\n!]/.test(character)) return undefined
    if (quote) {
      if (character === quote) quote = ''
      else word += character
    } else if (character === '"' || character === "'") {
      quote = character
      begun = true
    } else if (/[;&|<>(){}#~^=]/.test(character) && !(character === '=' && begun && words.length > 0)) return undefined
    else if (character === ' ' || character === '\t') end()
    else {
      word += character
      begun = true
      pattern ||= /[*?[\]]/.test(character)
    }
  }
  if (quote) return undefined
  end()
  return words
}

const RULES: { readonly [program: string]: (args: readonly Word[]) => boolean } = {
  // A pattern may expand to a file named like an option, so none is accepted where an option writes or runs something.
  git: ([verb, ...rest]) =>
    verb !== undefined
    && GIT.has(verb.text)
    && rest.every(({ text, pattern }) => !pattern && !/^--(ou|ex|te)/.test(text)),
  find: args => args.every(({ text, pattern }) => !pattern && !/^-(exec|ok|delete|fprint|fls|files0)/.test(text)),
  rg: args => args.every(({ text, pattern }) => !pattern && !/^(--(pre|host|sea)|-[a-zA-Z0-9]*z)/.test(text)),
}

/** Whether a shell command is known to be read-only: on a short list, with no option that writes or runs something. */
export const isReadOnly = (command: string): boolean => {
  if (command.length > 2000) return false
  const [program, ...args] = wordsOf(command) ?? []
  if (program === undefined || program.pattern) return false
  if (ALWAYS.has(program.text)) return true
  return Object.hasOwn(RULES, program.text) && RULES[program.text]!(args)
}
