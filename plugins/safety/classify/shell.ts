/** A simple command of a shell line, with what its words mean once quotes are removed. */
export interface ParsedCommand {
  /** The program and its arguments, without assignments and redirections. */
  readonly words: readonly string[]
  readonly reads: readonly string[]
  readonly writes: readonly string[]
  /** Text that it reads from a here-document or a here-string. */
  readonly given?: string
  /** The command whose output it reads. */
  readonly from?: ParsedCommand
}

const KEYWORDS = new Set(['if', 'then', 'else', 'elif', 'fi', 'while', 'until', 'do', 'done', 'esac', '{', '}', '!'])
const ASSIGNMENT = /^[A-Za-z_][A-Za-z0-9_]*\+?=/
/** Stands for a blank that a variable gives. */
const BLANK = '\0'
const MOST_COMMANDS = 2_000
const MOST_DEPTH = 12
const ESCAPES: { readonly [letter: string]: string } = { n: '\n', t: '\t', r: '\r', e: '\u001b', a: '', b: '' }

interface Draft {
  words: string[]
  reads: string[]
  writes: string[]
  given?: string
  from?: ParsedCommand
}

/**
 * The simple commands of a shell text in order, those of substitutions and groups too. Text that is no valid shell is
 * read as far as it can be.
 */
export const parsedCommands = (text: string): ParsedCommand[] => {
  const reader = new ShellReader(text)
  reader.list(undefined, 0)
  return reader.found
}

class ShellReader {
  readonly found: ParsedCommand[] = []
  readonly #text: string
  #at = 0
  readonly #here: { readonly word: string; readonly tabs: boolean; readonly of: Draft }[] = []

  constructor(text: string) {
    this.#text = text
  }

  /** Reads commands up to a closing character or the end. */
  list(until: string | undefined, depth: number): void {
    let command: Draft = { words: [], reads: [], writes: [] }
    const end = (piped = false): void => {
      const kept = this.#keep(command)
      command = { words: [], reads: [], writes: [], ...(piped && kept && { from: kept }) }
    }
    while (this.#at < this.#text.length && this.found.length < MOST_COMMANDS) {
      const char = this.#text[this.#at]!
      const next = this.#text[this.#at + 1]
      if (char === until) {
        this.#at++
        break
      }
      if (char === '\n') {
        end()
        this.#at++
        this.#heredocs()
      } else if (char === ' ' || char === '\t' || char === '\r') this.#at++
      else if (char === '\\' && next === '\n') this.#at += 2
      else if (char === '#') this.#comment()
      else if (char === '|') {
        end(next !== '|')
        this.#at += next === '|' || next === '&' ? 2 : 1
      } else if (char === '&' && next === '>') this.#redirect(command, depth)
      else if (char === ';' || char === '&' || char === ')') {
        end()
        this.#at++
      } else if (char === '(') {
        end()
        this.#at++
        if (depth < MOST_DEPTH) this.list(')', depth + 1)
      } else if (char === '<' || char === '>') this.#redirect(command, depth)
      else if (/[0-9]/.test(char) && /^[0-9]{1,3}[<>]/.test(this.#text.slice(this.#at, this.#at + 4))) {
        while (/[0-9]/.test(this.#text[this.#at]!)) this.#at++
        this.#redirect(command, depth)
      } else command.words.push(...this.#word(depth).split(BLANK))
    }
    end()
  }

  /** Keeps a command that does something; drops what only leads to it. */
  #keep(draft: Draft): ParsedCommand | undefined {
    let first = 0
    while (first < draft.words.length && (KEYWORDS.has(draft.words[first]!) || ASSIGNMENT.test(draft.words[first]!)))
      first++
    const words = draft.words.slice(first)
    if (words.length === 0 && draft.reads.length === 0 && draft.writes.length === 0) return draft.from
    const kept = Object.assign(draft, { words })
    this.found.push(kept)
    return kept
  }

  #comment(): void {
    while (this.#at < this.#text.length && this.#text[this.#at] !== '\n') this.#at++
  }

  #blanks(): void {
    while (this.#text[this.#at] === ' ' || this.#text[this.#at] === '\t') this.#at++
  }

  #redirect(command: Draft, depth: number): void {
    const sign = /^(?:&>>?|<<<|<<-?|<>|<&|>&|>>|>\||[<>])/.exec(this.#text.slice(this.#at, this.#at + 3))?.[0] ?? '<'
    if ((sign === '<' || sign === '>') && this.#text[this.#at + 1] === '(') {
      this.#at += 2
      if (depth < MOST_DEPTH) this.list(')', depth + 1)
      return
    }
    this.#at += sign.length
    this.#blanks()
    if (this.#at >= this.#text.length || this.#text[this.#at] === '\n') return
    const word = this.#word(depth)
    if (sign === '<<' || sign === '<<-') this.#here.push({ word, tabs: sign === '<<-', of: command })
    else if (sign === '<<<') command.given = word
    else if (sign === '<') command.reads.push(word)
    else if (!/^(?:[0-9]+|-)$/.test(word)) command.writes.push(word)
  }

  /** Reads the bodies of here-documents, which follow their line. */
  #heredocs(): void {
    for (const { word, tabs, of } of this.#here.splice(0)) {
      const lines: string[] = []
      while (this.#at < this.#text.length) {
        const stop = this.#text.indexOf('\n', this.#at)
        const line = this.#text.slice(this.#at, stop < 0 ? undefined : stop)
        this.#at = stop < 0 ? this.#text.length : stop + 1
        const plain = tabs ? line.replace(/^\t+/, '') : line
        if (plain === word) break
        lines.push(plain)
      }
      of.given = lines.join('\n')
    }
  }

  /** One word, without its quotes; a substitution in it is read as commands of its own. */
  #word(depth: number): string {
    let word = ''
    const start = this.#at
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at]!
      if (' \t\n\r;|&()<>'.includes(char)) break
      this.#at++
      if (char === '\\') {
        const next = this.#text[this.#at++]
        if (next !== '\n') word += next ?? ''
      } else if (char === "'") word += this.#plain()
      else if (char === '"') word += this.#quoted(depth)
      else if (char === '`') this.#backticks(depth)
      else if (char === '$') word += this.#dollar(depth)
      else word += char
    }
    if (this.#at === start) this.#at++
    return word
  }

  #plain(): string {
    const end = this.#text.indexOf("'", this.#at)
    const text = this.#text.slice(this.#at, end < 0 ? undefined : end)
    this.#at = end < 0 ? this.#text.length : end + 1
    return text
  }

  #quoted(depth: number): string {
    let text = ''
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at++]!
      if (char === '"') break
      if (char === '\\') {
        const next = this.#text[this.#at++] ?? ''
        if (next !== '\n') text += '$`"\\'.includes(next) ? next : `\\${next}`
      } else if (char === '`') this.#backticks(depth)
      else if (char === '$') text += this.#dollar(depth)
      else text += char
    }
    return text
  }

  /** What follows a dollar sign: quotes with escapes, a substitution, or a variable, whose name stays. */
  #dollar(depth: number): string {
    const next = this.#text[this.#at]
    if (next === "'") {
      this.#at++
      return this.#escaped()
    }
    if (next === '"') {
      this.#at++
      return this.#quoted(depth)
    }
    if (next === '(') {
      this.#at++
      if (depth < MOST_DEPTH) this.list(')', depth + 1)
      return '$()'
    }
    if (next !== '{') return '$'
    const end = this.#text.indexOf('}', this.#at)
    const name = this.#text.slice(this.#at, end < 0 ? undefined : end + 1)
    // `${IFS}` is the usual way to write a command without spaces.
    if (name !== '${IFS}'.slice(1)) return '$'
    this.#at = end + 1
    return BLANK
  }

  #escaped(): string {
    let text = ''
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at++]!
      if (char === "'") break
      if (char !== '\\') {
        text += char
        continue
      }
      const code = /^(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{1,4}))/.exec(
        this.#text.slice(this.#at, this.#at + 5),
      )
      if (code) {
        this.#at += code[0].length
        text += String.fromCharCode(code[2] ? parseInt(code[2], 8) : parseInt(code[1] ?? code[3]!, 16))
      } else {
        const letter = this.#text[this.#at++] ?? ''
        text += ESCAPES[letter] ?? letter
      }
    }
    return text
  }

  #backticks(depth: number): void {
    let inner = ''
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at++]!
      if (char === '`') break
      if (char === '\\') inner += this.#text[this.#at++] ?? ''
      else inner += char
    }
    if (depth >= MOST_DEPTH) return
    const reader = new ShellReader(inner)
    reader.list(undefined, depth + 1)
    this.found.push(...reader.found.slice(0, MOST_COMMANDS))
  }
}
