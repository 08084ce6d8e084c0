/** One assignment of a `.env` text. */
export interface Assignment {
  readonly name: string
  readonly value: string
}
/** A piece of a `.env` text as it is written: an assignment, or what stands between two. */
interface Piece {
  readonly text: string
  readonly assigned?: Assignment
}

/** A `.env` text that cannot be read, with the number of the line. */
export class EnvTextError extends Error {
  readonly line: number

  /** What was found is said without its text, which may be a secret. */
  constructor(line: number, expected: string, found: string) {
    super(`line ${line}: expected ${expected}, found ${found}`)
    this.line = line
  }
}

const NAME = /(?:export[ \t]+)?([^\s=#'"]+)[ \t]*=[ \t]*/y
const BLANK = /[ \t]*(?:#[^\n]*)?\r?(?:\n|$)/y
/** What may follow a closing quote. */
const REST = BLANK
const BARE = /[^\n]*(?:\n|$)/y
const ESCAPES: { readonly [letter: string]: string } = {
  n: '\n',
  r: '\r',
  t: '\t',
  '\\': '\\',
  '"': '"',
  $: '$',
  '`': '`',
}

/** The assignments of a `.env` text in order; throws `EnvTextError`. */
export const readEnvText = (text: string): Assignment[] =>
  pieces(text).flatMap(({ assigned }) => (assigned ? [assigned] : []))

/**
 * The text with other values: those of `set` replaced where they stand or added at the end, those of `drop` left out;
 * everything else stays as it was written.
 */
export const editEnvText = (text: string, set: ReadonlyMap<string, string>, drop: ReadonlySet<string>): string => {
  const all = pieces(text)
  const last = new Map(all.map(({ assigned }, at) => [assigned?.name, at]))
  const kept = all.flatMap(({ text: as, assigned }, at) => {
    if (!assigned) return [as]
    const { name } = assigned
    if (drop.has(name)) return []
    const value = set.get(name)
    if (value === undefined) return [as]
    return last.get(name) === at ? [`${as.startsWith('export') ? 'export ' : ''}${assignment(name, value)}`] : []
  })
  const before = kept.join('')
  const added = [...set].filter(([name]) => !last.has(name)).map(([name, value]) => assignment(name, value))
  return added.length > 0 && before !== '' && !before.endsWith('\n')
    ? `${before}\n${added.join('')}`
    : before + added.join('')
}

const assignment = (name: string, value: string): string => `${name}=${quoted(value)}\n`

/** Whether every reader of such a file finds the end of a value. */
export const isEnvValue = (value: string): boolean => !value.endsWith('\\')

/** A value as the tools that read such files write it, on one line: some know no quotes that go over several. */
const quoted = (value: string): string => {
  if (/^[\w./:@%+,=-]+$/.test(value)) return value
  if (!/['\r\n]/.test(value)) return `'${value}'`
  return `"${value
    .replace(/[\\"$`]/g, '\\$&')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')}"`
}

const pieces = (text: string): Piece[] => {
  const found: Piece[] = []
  let at = text.startsWith('\ufeff') ? 1 : 0
  if (at > 0) found.push({ text: '\ufeff' })
  const lineOf = (place: number): number => text.slice(0, place).split('\n').length
  while (at < text.length) {
    const from = at
    const blank = match(BLANK, text, at)
    if (blank !== undefined) {
      at += blank.length
      found.push({ text: blank })
      continue
    }
    at += match(/[ \t]*/y, text, at)!.length
    NAME.lastIndex = at
    const named = NAME.exec(text)
    if (!named) throw new EnvTextError(lineOf(from), 'NAME=value, a comment or nothing', 'other text')
    at += named[0].length
    const quote = text[at]
    let value: string
    if (quote === "'" || quote === '"') {
      const end = closing(text, at, quote)
      if (end < 0) throw new EnvTextError(lineOf(from), `a closing ${quote} after the value`, 'none')
      const inner = text.slice(at + 1, end)
      value = quote === "'" ? inner : inner.replace(/\\([nrt\\"$`])/g, (_, letter: string) => ESCAPES[letter]!)
      const rest = match(REST, text, end + 1)
      if (rest === undefined)
        throw new EnvTextError(lineOf(end), 'nothing but a comment after the closing quote', 'more')
      at = end + 1 + rest.length
    } else {
      const rest = match(BARE, text, at)!
      value = rest.replace(/(?:^|[ \t])#.*/s, '').trim()
      at += rest.length
    }
    if (value.includes('\0')) throw new EnvTextError(lineOf(from), 'a value without NUL characters', 'one')
    found.push({ text: text.slice(from, at), assigned: { name: named[1]!, value } })
  }
  return found
}

/** Where a quoted value ends; -1: nowhere. */
const closing = (text: string, from: number, quote: string): number => {
  for (let at = from + 1; at < text.length; at++) {
    if (quote === '"' && text[at] === '\\') at += 1
    else if (text[at] === quote) return at
  }
  return -1
}

const match = (form: RegExp, text: string, at: number): string | undefined => {
  form.lastIndex = at
  return form.exec(text)?.[0]
}
