/** JSON with comments: a value with its position in the text, from its first character to behind its last. */
export interface JsonNode {
  readonly start: number
  readonly end: number
  /** The value of a text, number, boolean or `null`. */
  readonly scalar?: string | number | boolean | null
  /** The members of an object, in order. */
  readonly members?: readonly JsonMember[]
  /** The items of a list. */
  readonly items?: readonly JsonItem[]
}

/** What a list or an object holds, from its first character to behind its value. */
export interface JsonItem {
  readonly start: number
  readonly end: number
  readonly value: JsonNode
  /** Where the comma behind it is. */
  readonly comma?: number
}

/** A member of an object. */
export interface JsonMember extends JsonItem {
  readonly key: string
}

/** A text that is not JSON with comments. */
export class JsonTextError extends Error {
  readonly line: number
  readonly column: number

  constructor(text: string, at: number, problem: string) {
    const before = text.slice(0, at).split(/\r\n|\r|\n/)
    const [line, column] = [before.length, [...before.at(-1)!].length + 1]
    super(`line ${line}, column ${column}: ${problem}`)
    this.name = 'JsonTextError'
    this.line = line
    this.column = column
  }
}

const DEEPEST = 64
const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype'])
const SPACE = /[ \t\r\n]+/y
const COMMENT = /\/\/[^\r\n]*|\/\*[^]*?\*\//y
const TEXT = /"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const WORD = /true|false|null/y
const WORDS: { readonly [word: string]: boolean | null } = { true: true, false: false, null: null }

class Reader {
  readonly #text: string
  #at: number

  constructor(text: string) {
    this.#text = text
    this.#at = text.startsWith('\ufeff') ? 1 : 0
  }

  whole(): JsonNode {
    this.#skip()
    const value = this.#value(0)
    this.#skip()
    if (this.#at < this.#text.length) this.#fail('expected the end of the file')
    return value
  }

  #fail(problem: string, at = this.#at): never {
    throw new JsonTextError(this.#text, at, problem)
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    if (found !== undefined) this.#at += found.length
    return found
  }

  #skip(): void {
    while (this.#take(SPACE) !== undefined || this.#take(COMMENT) !== undefined);
    if (this.#text.startsWith('/*', this.#at)) this.#fail('expected the end of this comment')
  }

  #value(depth: number): JsonNode {
    if (depth > DEEPEST) this.#fail(`expected at most ${DEEPEST} levels`)
    const start = this.#at
    const first = this.#text[start]
    if (first === '{') return { ...this.#object(depth), start, end: this.#at }
    if (first === '[') return { ...this.#list(depth), start, end: this.#at }
    if (first === '"') return { scalar: this.#string(), start, end: this.#at }
    const number = this.#take(NUMBER)
    const word = number === undefined ? this.#take(WORD) : undefined
    if (number === undefined && word === undefined) this.#fail('expected a value')
    if (/[\w.$]/.test(this.#text[this.#at] ?? '')) this.#fail('expected a value', start)
    return { scalar: number === undefined ? WORDS[word!]! : Number(number), start, end: this.#at }
  }

  #string(): string {
    const found = this.#take(TEXT)
    return found === undefined ? this.#fail('expected a text in quotes on one line') : (JSON.parse(found) as string)
  }

  #object(depth: number): { members: JsonMember[] } {
    const members: JsonMember[] = []
    const known = new Set<string>()
    this.#each('}', () => {
      const start = this.#at
      if (this.#text[start] !== '"') this.#fail('expected a key in quotes or }')
      const key = this.#string()
      if (FORBIDDEN.has(key)) this.#fail(`expected another key than ${key}`, start)
      if (known.has(key)) this.#fail(`expected each key once, found ${JSON.stringify(key.slice(0, 60))} again`, start)
      known.add(key)
      this.#skip()
      if (this.#text[this.#at] !== ':') this.#fail('expected a colon')
      this.#at++
      this.#skip()
      const value = this.#value(depth + 1)
      return comma => members.push({ key, value, start, end: value.end, ...(comma !== undefined && { comma }) })
    })
    return { members }
  }

  #list(depth: number): { items: JsonItem[] } {
    const items: JsonItem[] = []
    this.#each(']', () => {
      const value = this.#value(depth + 1)
      const { start, end } = value
      return comma => items.push({ value, start, end, ...(comma !== undefined && { comma }) })
    })
    return { items }
  }

  /** Reads what stands between two brackets; a comma may follow the last one. */
  #each(close: string, read: () => (comma: number | undefined) => void): void {
    this.#at++
    this.#skip()
    while (this.#text[this.#at] !== close) {
      const add = read()
      this.#skip()
      const comma = this.#text[this.#at] === ',' ? this.#at++ : undefined
      add(comma)
      this.#skip()
      if (comma === undefined && this.#text[this.#at] !== close) this.#fail(`expected a comma or ${close}`)
    }
    this.#at++
  }
}

/**
 * Reads JSON with comments and commas behind last values.
 *
 * @throws {JsonTextError} With the line and column.
 */
export const readJsonText = (text: string): JsonNode => new Reader(text).whole()

/** The value that a node stands for. */
export const valueOfNode = ({ scalar, members, items }: JsonNode): unknown => {
  if (members) return Object.fromEntries(members.map(({ key, value }) => [key, valueOfNode(value)]))
  return items ? items.map(({ value }) => valueOfNode(value)) : scalar
}

/** The member of an object by its key. */
export const memberOf = ({ members = [] }: JsonNode, key: string): JsonMember | undefined =>
  members.find(member => member.key === key)
