import { refuse } from '../../index.js'

/** One line of an OpenVPN configuration, read. */
export interface Directive {
  readonly name: string
  readonly args: readonly string[]
  readonly line: number
}
/** What an OpenVPN configuration consists of. */
export interface OpenvpnParts {
  /** The directives outside of every block. */
  readonly own: readonly Directive[]
  /** The directives of each `<connection>`. */
  readonly connections: readonly (readonly Directive[])[]
  /** The lines of each block with the content of a file. */
  readonly files: ReadonlyMap<string, readonly string[]>
}

/** The bytes of a line that OpenVPN reads, and how many words. */
const LINE_BYTES = 250
const WORDS = 15
const KEY_LINES = 2000
const BASE64 = /^[A-Za-z0-9+/]{1,16384}={0,2}$/
/** What an encrypted key says before its bytes. */
const KEY_HEADER = /^(?:Proc-Type: \d,ENCRYPTED|DEK-Info: [A-Z0-9-]{1,40},[0-9A-F]{1,64})$/
const LABEL = /^-----(BEGIN|END) ([A-Za-z0-9][A-Za-z0-9 -]{0,60}[A-Za-z0-9])-----$/

/** Refuses a configuration for one of its lines. */
export const wrongLine = (line: number, message: string): never =>
  refuse('unprocessable', `config: line ${line}: ${message}`)

/** Reads a line's words as OpenVPN does, and refuses what other readers take another way. */
const wordsOf = (text: string, line: number): string[] => {
  const words: string[] = []
  const word = /[ \t]*(?:([#;])|"([^"\\]*)"(?=[ \t]|$)|'([^'\\]*)'(?=[ \t]|$)|([^ \t"'\\]+)|$)/y
  while (word.lastIndex < text.length) {
    const found = word.exec(text)
    if (!found) return wrongLine(line, 'expected each quote to be closed, a blank between words, and no backslash')
    const [, comment, double, single, plain] = found
    if (comment !== undefined) break
    const said = double ?? single ?? plain
    if (said !== undefined) words.push(said)
  }
  if (words.length > WORDS) wrongLine(line, `expected at most ${WORDS} words, found ${words.length}`)
  return words
}

const directiveOf = (raw: string, line: number): Directive | undefined => {
  const [name, ...args] = wordsOf(raw, line)
  return name === undefined ? undefined : { name: name.replace(/^--/, ''), args, line }
}

/** The lines of keys and certificates of a block; other programs write words around them, which are left out. */
const keyLines = (name: string, lines: readonly { text: string; line: number }[]): string[] => {
  const kept: string[] = []
  let label: string | undefined
  const bare = !lines.some(({ text }) => text.startsWith('-----'))
  for (const { text, line } of lines) {
    const [, edge, named = ''] = LABEL.exec(text) ?? []
    if (edge === 'BEGIN' ? label !== undefined : edge === 'END' && label !== named)
      wrongLine(line, `<${name}>: expected each -----BEGIN with its -----END`)
    const inside = bare || label !== undefined
    if (edge !== undefined) {
      label = edge === 'BEGIN' ? named : undefined
      kept.push(`-----${edge} ${named}-----`)
    } else if (inside && text !== '') {
      if (!BASE64.test(text) && !(label !== undefined && KEY_HEADER.test(text)))
        wrongLine(line, `<${name}>: expected a line of a key or a certificate`)
      // An encrypted key has an empty line between its headers and its bytes.
      if (KEY_HEADER.test(kept.at(-1) ?? '') && BASE64.test(text)) kept.push('')
      kept.push(text)
    }
  }
  if (label !== undefined) wrongLine(lines.at(-1)!.line, `<${name}>: expected -----END ${label}-----`)
  if (kept.length === 0) wrongLine(lines[0]?.line ?? 1, `<${name}>: expected a key or a certificate, found none`)
  return kept
}

/** Splits a configuration into its directives and blocks. 422: it can be read in two ways, with the line. */
export const openvpnParts = (text: string, blocks: ReadonlySet<string>): OpenvpnParts => {
  const own: Directive[] = []
  const connections: Directive[][] = []
  const files = new Map<string, string[]>()
  let open: { name: string; line: number; lines: { text: string; line: number }[]; inside: Directive[] } | undefined
  for (const [at, whole] of text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    const line = at + 1
    if (/[^\P{C}\t]|[\u2028\u2029]/u.test(whole)) wrongLine(line, 'expected no control character')
    const raw = whole.replace(/^[ \t]+|[ \t]+$/g, '')
    const [, slash, tag = ''] = /^<(\/?)([a-zA-Z0-9-]+)>$/.exec(raw) ?? []
    if (open && slash && tag === open.name) {
      if (open.name === 'connection') connections.push(open.inside)
      else if (files.has(tag)) wrongLine(open.line, `<${tag}> is there twice`)
      else files.set(tag, keyLines(tag, open.lines))
      open = undefined
    } else if (raw.startsWith('<') && (open || tag === '' || slash)) {
      // OpenVPN ends a block at a line that only begins with its end.
      wrongLine(
        line,
        open ? `expected </${open.name}> alone on its line` : 'expected a block such as <ca> alone on its line',
      )
    } else if (tag !== '') {
      if (tag !== 'connection' && !blocks.has(tag))
        wrongLine(line, `the sandbox does not pass a block <${tag.slice(0, 40)}> to openvpn`)
      open = { name: tag, line, lines: [], inside: [] }
    } else if (open && open.name !== 'connection') {
      if (open.lines.push({ text: raw, line }) > KEY_LINES)
        wrongLine(line, `expected at most ${KEY_LINES} lines in a block`)
    } else {
      const directive = directiveOf(raw, line)
      if (directive) (open?.inside ?? own).push(directive)
    }
  }
  if (open) wrongLine(open.line, `<${open.name}> is not closed`)
  return { own, connections, files }
}

/** Writes a directive so that OpenVPN reads exactly these words. */
export const writtenDirective = ({ name, args, line }: Directive): string => {
  const written = [name, ...args.map(word => (/^[A-Za-z0-9_.:/@,+=%*-]+$/.test(word) ? word : `"${word}"`))].join(' ')
  if (args.some(word => /["\\]/.test(word))) wrongLine(line, 'expected no quote and no backslash in a word')
  if (Buffer.byteLength(written) > LINE_BYTES) wrongLine(line, `expected at most ${LINE_BYTES} bytes`)
  return written
}
