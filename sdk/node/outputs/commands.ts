/** Shows files, or selects lines: an agent that runs one wants exactly these lines. */
const READERS = new Set(
  (
    'cat tac nl bat less more head tail sed awk gawk grep egrep fgrep rg ag ack find fd ls tree diff cmp comm sort '
    + 'uniq cut tr wc jq yq xxd od hexdump strings file stat echo printf column paste fold fmt env '
    + 'printenv date base64 sqlite3 psql mysql'
  ).split(' '),
)
const GIT_READERS = new Set(
  'diff show log blame grep cat-file ls-files ls-tree reflog shortlog config rev-parse'.split(' '),
)
/** Their last words are what counts, so what they leave over is shortened like all of it. */
const ENDINGS = new Set(['head', 'tail', 'tee', 'cat'])
/** Set up a program, and are none themselves. */
const BEFORE = new Set(
  'sudo env time nice nohup timeout stdbuf exec command xargs npx bunx pnpx uvx if then do else while until !'.split(
    ' ',
  ),
)
/** Their first word says what they do; that of others is an argument. */
const WITH_VERBS = new Set(
  (
    'git gh hg npm yarn pnpm bun deno cargo rustup go docker podman nerdctl buildah docker-compose kubectl helm '
    + 'terraform tofu pulumi pip pip3 uv poetry pipenv conda mamba apt apt-get dnf yum apk pacman brew zypper dotnet '
    + 'nx turbo'
  ).split(' '),
)
const SEARCHERS = new Set('grep egrep fgrep rg ag ack find fd fdfind'.split(' '))

/** One program of a command line. */
export interface CommandProgram {
  /** Its file name, such as `git`. */
  readonly name: string
  /** The first word after it that is no option, such as `clone`. */
  readonly verb: string
  /** It gets its input from the program before it. */
  readonly piped: boolean
}

const PARTS = /("(?:[^"\\]|\\.)*"|'[^']*')|(\|\||&&|;|\n|\|&?|&(?![>&\d])|[({])/g
const MOST = 20_000

/** The programs of a command line, as far as they can be told from its text. */
export const programsOf = (command: string): CommandProgram[] => {
  const programs: CommandProgram[] = []
  let piped = false
  let part = ''
  const end = (next: string) => {
    const program = programOf(part, piped)
    if (program) programs.push(program)
    part = ''
    piped = next.startsWith('|') && next !== '||'
  }
  let at = 0
  const text = command.slice(0, MOST)
  for (const found of text.matchAll(PARTS)) {
    part += text.slice(at, found.index)
    at = found.index + found[0].length
    if (found[1] !== undefined) part += found[1]
    else end(found[2]!)
  }
  part += text.slice(at)
  end('')
  return programs
}

const programOf = (part: string, piped: boolean): CommandProgram | undefined => {
  const words = part
    .trim()
    .split(/\s+/)
    .map(word => word.replaceAll(/^["']|["']$/g, ''))
  let at = 0
  for (; at < words.length; at++) {
    const word = words[at]!
    const name = word.split('/').at(-1)!
    const before = at > 0 && BEFORE.has(words[at - 1]!.split('/').at(-1)!)
    if (/^\w+=/.test(word) || BEFORE.has(name) || (before && /^(?:-|\d+[smh]?$)/.test(word))) continue
    break
  }
  const name = words[at]?.split('/').at(-1)
  if (!name) return undefined
  const verb = words.slice(at + 1).find(word => !word.startsWith('-') && !/^\w+=/.test(word)) ?? ''
  return { name, verb, piped }
}

const reads = ({ name, verb }: CommandProgram): boolean =>
  READERS.has(name) || (name === 'git' && GIT_READERS.has(verb))

/** Whether a command shows files or selects lines, so that its output is wanted as it is. */
export const readsFiles = (programs: readonly CommandProgram[]): boolean =>
  programs.some(program => reads(program) && !(program.piped && ENDINGS.has(program.name)))

/** Whether a command searches files. */
export const searchesFiles = (command: string): boolean =>
  programsOf(command).some(
    ({ name, verb, piped }) => !piped && (SEARCHERS.has(name) || (name === 'git' && verb === 'grep')),
  )

/** A short name of a command, without its arguments: `npm install`, `make`. */
export const nameOfCommand = (programs: readonly CommandProgram[]): string => {
  const [first] = programs.filter(({ name }) => !['cd', 'export', 'set', 'source', '.'].includes(name))
  if (!first || !/^[\w.+-]{1,40}$/.test(first.name)) return 'other'
  const { name, verb } = first
  return WITH_VERBS.has(name) && /^[a-z][a-z-]{1,20}$/.test(verb) ? `${name} ${verb}` : name
}
