/** One field as the specification writes it; the path has `[]` where a list is. */
export interface Field {
  readonly path: string
  readonly type?: string
  /** The record that it, or each item of it, is. */
  readonly of?: string
  readonly values?: readonly string[]
  /** The number of values in all, where the text names some of them. */
  readonly inAll?: number
  readonly required?: true
  readonly in?: 'path' | 'query' | 'body'
  /** The value of `kind` with which the input has this field. */
  readonly kind?: string
}

const TYPE = /^(?:string|number|integer|boolean|object)s?$/
const IN_ALL: { readonly [word: string]: number } = { five: 5, six: 6, seven: 7, nine: 9, twelve: 12 }

interface Token {
  /** A name is code, a word is text around it. */
  readonly is: 'name' | 'word' | 'mark'
  readonly text: string
}

const MARKS = /[{}[\](),:;?/]/
const PARTS = /[{}[\](),:;?/]|[^\s{}[\](),:;?/]+/g

/** Where a piece of code that begins here ends; one in braces holds backticks of its own. */
const endOfCode = (text: string, start: number): number => {
  if (text[start] !== '{') return text.indexOf('`', start)
  let depth = 0
  for (let at = start; at < text.length; at++) {
    if (text[at] === '{') depth++
    if (text[at] === '}' && --depth === 0) return text.indexOf('`', at)
  }
  return text.length
}

const tokensIn = (text: string, isCode: boolean): Token[] => {
  if (isCode && /^[^\s{}[\],?]+$/.test(text) && !TYPE.test(text)) return [{ is: 'name', text }]
  return (text.replaceAll('`', '').match(PARTS) ?? []).map((found): Token => {
    if (MARKS.test(found)) return { is: 'mark', text: found }
    return { is: isCode && /^[\w$-]+$/.test(found) && !TYPE.test(found) ? 'name' : 'word', text: found }
  })
}

/** What stands in backticks is names, marks and types; what does not is words, marks and types. */
const tokensOf = (text: string): Token[] => {
  const tokens: Token[] = []
  for (let at = 0; at < text.length;) {
    const start = text.indexOf('`', at)
    if (start === -1) return [...tokens, ...tokensIn(text.slice(at), false)]
    const end = endOfCode(text, start + 1)
    tokens.push(...tokensIn(text.slice(at, start), false), ...tokensIn(text.slice(start + 1, end), true))
    at = end + 1
  }
  return tokens
}

class Reader {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  get next(): Token | undefined {
    return this.#tokens[this.#at]
  }

  take(): Token {
    return this.#tokens[this.#at++]!
  }

  isMark(text: string): boolean {
    return this.next?.is === 'mark' && this.next.text === text
  }

  /** The tokens between here, at an opening mark, and the mark that closes it. */
  inner(): Token[] {
    const start = this.#at + 1
    let depth = 0
    do {
      const { is, text } = this.take()
      if (is === 'mark' && '{[('.includes(text)) depth++
      if (is === 'mark' && '}])'.includes(text)) depth--
    } while (depth > 0 && this.next)
    return this.#tokens.slice(start, this.#at - 1)
  }
}

const has = (tokens: readonly Token[], mark: string): boolean =>
  tokens.some(({ is, text }) => is === 'mark' && text === mark)
const namesOf = (tokens: readonly Token[]): string[] => tokens.filter(({ is }) => is === 'name').map(({ text }) => text)
const wordsOf = (tokens: readonly Token[]): string => tokens.map(({ text }) => text).join(' ')

/** What a pair of parentheses says of the field before it. */
const aside = (tokens: Token[], path: string): { own: Partial<Field>; below: Field[] } => {
  const words = wordsOf(tokens)
  const names = namesOf(tokens)
  const more = /\bmore\b|\bgiven\b/.test(words)
  const inAll = IN_ALL[/(\w+) exist/.exec(words)?.[1] ?? ''] ?? (more ? names.length + 1 : undefined)
  if (/^req\b|; req\b|\breq$|^required/.test(words) && names.length === 0) return { own: { required: true }, below: [] }
  if (names.length === 0) return { own: {}, below: [] }
  if (more) return { own: { values: names, inAll: inAll! }, below: [] }
  const isChoice = has(tokens, '/') && !has(tokens, ',')
  const isList = has(tokens, ',') || has(tokens, ';')
  if (isChoice || !isList) return { own: isChoice ? { values: names } : {}, below: [] }
  const [first, list, , colon] = tokens
  // `windows[]`: fields of each item.
  if (first!.is === 'name' && list?.text === '[' && colon?.text === ':')
    return {
      own: {},
      below: [
        { path: `${path}.${first!.text}`, type: 'object[]' },
        ...read(new Reader(tokens.slice(4)), `${path}.${first!.text}[].`),
      ],
    }
  return { own: {}, below: read(new Reader(tokens), `${path}.`) }
}

/** Reads fields until the tokens end. */
const read = (reader: Reader, before = ''): Field[] => {
  const fields: Field[] = []
  while (reader.next) {
    const { is, text: name } = reader.take()
    if (is !== 'name') {
      if (is === 'mark' && name === '{') return [...fields, ...readBraces(reader, before)]
      continue
    }
    const path = `${before}${name}`
    let field: Field = { path }
    const below: Field[] = []
    while (reader.next && !reader.isMark(',') && !reader.isMark(';')) {
      if (reader.isMark('(')) {
        const found = aside(reader.inner(), `${path}${field.type?.endsWith('[]') ? '[]' : ''}`)
        field = { ...field, ...found.own }
        below.push(...found.below)
      } else if (reader.isMark('[')) {
        const inner = reader.inner()
        field = { ...field, type: `${field.type ?? 'object'}[]` }
        if (has(inner, '{')) below.push(...read(new Reader(inner), `${path}[].`))
        else if (inner.length > 0) field = { ...field, type: 'object[]', of: wordsOf(inner).replace(/ with .*/, '') }
      } else if (reader.isMark('{')) {
        field = { ...field, type: 'object' }
        below.push(...read(new Reader(reader.inner()), `${path}${field.type?.endsWith('[]') ? '[]' : ''}.`))
      } else {
        const { is: kind, text } = reader.take()
        if (kind === 'word' && TYPE.test(text) && !field.type) field = { ...field, type: text.replace(/s$/, '') }
        else if (kind === 'name') field = { ...field, values: [...(field.values ?? []), text] }
      }
    }
    fields.push(field, ...below)
  }
  return fields
}

/** The rest of what an opening brace began; what stands after the closing one is words. */
const readBraces = (reader: Reader, before: string): Field[] => {
  const tokens: Token[] = [{ is: 'mark', text: '{' }]
  while (reader.next) tokens.push(reader.take())
  const whole = new Reader(tokens)
  return read(new Reader(whole.inner()), before)
}

/** The fields that a cell or a sentence of the specification names. */
export const fieldsOf = (text: string): Field[] => read(new Reader(tokensOf(text)))
