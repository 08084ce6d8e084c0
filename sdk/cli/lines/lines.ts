import { isUtf8 } from 'node:buffer'
import type { Writable } from 'node:stream'
import { jsonLine } from '../terminal/text.js'
import type { Terminal } from '../verb.js'
import { write } from '../terminal/write.js'

/** What is done to one entry of the deployment, in the phase that does it. */
export interface NodeLine {
  readonly phase: 'resolve' | 'plan' | 'apply' | 'adopt'
  readonly state: 'start' | 'done' | 'failed'
  /** Its kind and name, such as `app.shop`. */
  readonly id: string
  readonly type?: string
  readonly action?: 'create' | 'update' | 'delete' | 'none'
  readonly detail?: string
}

/** Prints what a command does: JSON, one object with its `kind` a line, or text. */
export interface LinePrinter {
  /** Says something on the way. */
  log(message: string, level?: 'info' | 'warn' | 'error'): Promise<void>
  node(line: NodeLine): Promise<void>
  /** Prints the answer; `words` are its lines as text. */
  result(answer: object, words: readonly string[]): Promise<void>
}

const MARKS = { start: '…', done: '✓', failed: '✗' } as const

const nodeText = ({ phase, state, id, action, detail }: NodeLine): string => {
  const did = action === undefined ? '' : `: ${action}`
  return `${MARKS[state]} ${phase} ${id}${did}${detail === undefined ? '' : ` (${detail})`}`
}

/** Prints lines for programs with `json`, else for people. */
export const linePrinter = (terminal: Terminal, json: boolean): LinePrinter => {
  const print = (line: object, text: readonly string[]) =>
    write(terminal, json ? jsonLine(line) : text.map(each => `${each}\n`).join(''))
  return {
    log: (message, level = 'info') => print({ kind: 'log', message, level }, [message]),
    node: line => print({ kind: 'node', ...line }, [nodeText(line)]),
    result: (answer, words) => print({ kind: 'result', ...answer }, words),
  }
}

const MOST_TEXT = 64 * 1024

const textOfBytes = (bytes: Uint8Array): string =>
  isUtf8(bytes)
    ? Buffer.from(bytes).toString().slice(0, MOST_TEXT).toWellFormed()
    : `${bytes.length} bytes that are no text`

const asResult = (line: string): string => {
  if (line === '') return ''
  try {
    return jsonLine({ kind: 'result', answer: JSON.parse(line) as unknown })
  } catch {
    return jsonLine({ kind: 'text', text: line.slice(0, MOST_TEXT).toWellFormed() })
  }
}

const doneWith = (then: unknown) => (error?: Error | null) => {
  if (typeof then === 'function') (then as (error?: Error | null) => void)(error)
}

/** Makes each JSON value that a command prints a line of kind `result`, with it as `answer`; bytes become a text. */
export const asResults = (out: Terminal['out']): Terminal['out'] => {
  let rest = ''
  const wrapped = Object.create(out) as Writable
  wrapped.write = (piece: unknown, then?: unknown) => {
    // Bytes are the whole answer of a call, which need not be JSON.
    if (piece instanceof Uint8Array)
      return out.write(jsonLine({ kind: 'text', text: textOfBytes(piece) }), doneWith(then))
    const lines = (rest + String(piece)).split('\n')
    rest = lines.pop() ?? ''
    return out.write(lines.map(asResult).join(''), doneWith(then))
  }
  return wrapped
}
