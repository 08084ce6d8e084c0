import { referenceAt } from '../references.js'

/** A shell line whose references are variables, or why it cannot have them. */
export type ShellLine =
  | { readonly kind: 'line'; readonly text: string }
  | { readonly kind: 'refused'; readonly why: string }

/**
 * Puts a variable in place of each reference of a shell line, quoted for the place it stands in: the shell parses the
 * name of the variable and never its value.
 *
 * @param variableOf The variable that holds the value of a name.
 */
export const shellLine = (line: string, variableOf: (name: string) => string): ShellLine => {
  try {
    return { kind: 'line', text: new Rewriter(line, variableOf).whole() }
  } catch (error) {
    if (error instanceof Unclear) return { kind: 'refused', why: error.message }
    throw error
  }
}

/** A place in which a variable would mean something else than the value. */
class Unclear extends Error {}

/** A here-document whose lines follow at the next end of a line. */
interface Here {
  readonly delimiter: string
  readonly quoted: boolean
  readonly tabs: boolean
}

const BREAKS = new Set([' ', '\t', '\n', ';', '|', '&', '(', ')', '<', '>'])
const CASE = /case[\s]/y
const HERE = /<<(-?)[ \t]*((?:\\.|'[^']*'|"[^"]*"|[^\s;|&()<>'"\\])+)/y

/** Reads a line as the POSIX shell splits it (IEEE 1003.1, 2.2 and 2.3), and writes it anew on the way. */
class Rewriter {
  readonly #line: string
  readonly #variableOf: (name: string) => string
  #out = ''
  #at = 0
  #end: number

  constructor(line: string, variableOf: (name: string) => string) {
    this.#line = line
    this.#variableOf = variableOf
    this.#end = line.length
  }

  whole(): string {
    this.#commands(false)
    return this.#out
  }

  /** Words outside quotes; `inner`: up to the parenthesis that closes them. */
  #commands(inner: boolean): void {
    const here: Here[] = []
    while (this.#at < this.#end) {
      const char = this.#line[this.#at]!
      const begins = this.#at === 0 || BREAKS.has(this.#line[this.#at - 1]!)
      if (this.#reference(variable => `"${variable}"`)) continue
      if (inner && begins && this.#matches(CASE)) throw new Unclear('inside $( ) or ( ) beside a case')
      if (char === '\\') this.#escape('after a backslash')
      else if (char === "'") this.#single()
      else if (char === '"') this.#double()
      else if (char === '`') this.#backticks()
      else if (char === '$') this.#dollar(true)
      else if (char === '#' && begins) this.#comment()
      else if (char === '<' && this.#line.startsWith('<<<', this.#at)) this.#copy(3)
      else if (char === '<' && this.#line[this.#at + 1] === '<') here.push(this.#hereBegins())
      else if (char === '(' && this.#line[this.#at + 1] === '(') this.#balanced(1, 'inside (( ))')
      else if (char === '(') this.#nested(1)
      else {
        this.#copy(1)
        if (char === ')' && inner) return
        if (char === '\n') for (const each of here.splice(0)) this.#hereLines(each)
      }
    }
  }

  #nested(opening: number): void {
    this.#copy(opening)
    this.#commands(true)
  }

  #single(): void {
    this.#copy(1)
    while (this.#at < this.#end) {
      if (this.#reference(variable => `'"${variable}"'`)) continue
      if (this.#copy(1) === "'") return
    }
  }

  /** Text in which variables are put in place: in double quotes, or of a here-document. */
  #double(quote: '"' | '' = '"'): void {
    this.#copy(quote.length)
    while (this.#at < this.#end) {
      if (this.#reference(variable => variable)) continue
      const char = this.#line[this.#at]!
      if (char === '\\' && referenceAt(this.#line, this.#at + 1)) {
        // Before a brace it stands for itself, before a variable it would not.
        this.#out += '\\'
        this.#copy(1)
      } else if (char === '\\') this.#copy(2)
      else if (char === '`') this.#backticks()
      else if (char === '$') this.#dollar(false)
      else if (this.#copy(1) === quote) return
    }
  }

  #dollar(bare: boolean): void {
    const rest = this.#line.slice(this.#at + 1, this.#at + 3)
    if (referenceAt(this.#line, this.#at + 1)) throw new Unclear('after a $')
    if (rest === '((') this.#balanced(2, 'inside $(( ))')
    else if (rest[0] === '(') this.#nested(2)
    else if (rest[0] === '{') this.#parameter()
    else if (rest[0] === "'" && bare) this.#ansi()
    else this.#copy(1)
  }

  /** Arithmetic, whose variables are evaluated: no value may stand in it. */
  #balanced(opening: number, where: string): void {
    this.#copy(opening)
    let depth = 1
    while (this.#at < this.#end && depth > 0) {
      this.#clear(where)
      const char = this.#copy(1)
      depth += char === '(' ? 1 : char === ')' ? -1 : 0
    }
  }

  #parameter(): void {
    this.#copy(2)
    let depth = 1
    while (this.#at < this.#end && depth > 0) {
      this.#clear('inside ${ }')
      const char = this.#line[this.#at]!
      if (char === '\\') this.#copy(2)
      else {
        this.#copy(1)
        depth += char === '{' ? 1 : char === '}' ? -1 : 0
      }
    }
  }

  #ansi(): void {
    this.#copy(2)
    while (this.#at < this.#end) {
      this.#clear("inside $' '")
      const char = this.#line[this.#at]!
      // Shells differ on where such a text ends.
      if (char === '\\' && this.#line[this.#at + 1] === "'") throw new Unclear("beside a $' ' that holds a quote")
      this.#copy(char === '\\' ? 2 : 1)
      if (char === "'") return
    }
  }

  #backticks(): void {
    this.#copy(1)
    while (this.#at < this.#end) {
      this.#clear('inside backticks (write $( ) instead)')
      const char = this.#line[this.#at]!
      this.#copy(char === '\\' ? 2 : 1)
      if (char === '`') return
    }
  }

  #comment(): void {
    while (this.#at < this.#end && this.#line[this.#at] !== '\n') this.#copy(1)
  }

  #hereBegins(): Here {
    const [whole, dash, word] = this.#matches(HERE) ?? []
    if (whole === undefined) {
      this.#copy(2)
      return { delimiter: '', quoted: true, tabs: false }
    }
    if (word!.includes('{{secret:')) throw new Unclear('as the end of a here-document')
    this.#copy(whole.length)
    const delimiter = word!.replace(/\\(.)|'([^']*)'|"([^"]*)"/g, (_, one, two, three) => one ?? two ?? three)
    return { delimiter, quoted: /[\\'"]/.test(word!), tabs: dash === '-' }
  }

  /** The lines of a here-document with its last one. */
  #hereLines({ delimiter, quoted, tabs }: Here): void {
    const begin = this.#at
    let end = begin
    while (end < this.#end) {
      const next = this.#line.indexOf('\n', end)
      const stop = next < 0 || next >= this.#end ? this.#end : next
      const text = this.#line.slice(end, stop)
      if ((tabs ? text.replace(/^\t+/, '') : text) === delimiter) break
      end = Math.min(stop + 1, this.#end)
    }
    if (quoted) {
      while (this.#at < end) {
        this.#clear('inside a quoted here-document (leave its end without quotes)')
        this.#copy(1)
      }
    } else {
      const whole = this.#end
      this.#end = end
      this.#double('')
      this.#end = whole
    }
    while (this.#at < this.#end && this.#line[this.#at] !== '\n') this.#copy(1)
    this.#copy(1)
  }

  #escape(where: string): void {
    if (referenceAt(this.#line, this.#at + 1)) throw new Unclear(where)
    this.#copy(2)
  }

  #reference(quoted: (variable: string) => string): boolean {
    const found = referenceAt(this.#line, this.#at)
    if (!found || found.end > this.#end) return false
    this.#out += quoted(`\${${this.#variableOf(found.name)}}`)
    this.#at = found.end
    return true
  }

  #clear(where: string): void {
    if (referenceAt(this.#line, this.#at)) throw new Unclear(where)
  }

  #matches(form: RegExp): RegExpExecArray | null {
    form.lastIndex = this.#at
    return form.exec(this.#line)
  }

  #copy(count: number): string {
    const part = this.#line.slice(this.#at, Math.min(this.#at + count, this.#end))
    this.#out += part
    this.#at += part.length
    return part
  }
}
