import { STATUS_CODES, type ServerResponse } from 'node:http'

/** Headers of every answer: it may not be framed, type-sniffed, cached or embedded by other origins. */
const GENERAL = Object.entries({
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
  vary: 'Origin',
}).flat()

/** The header lines of one answer, written at once: setting each one on the response is several times slower. */
export class Lines {
  readonly #lines = [...GENERAL]

  /** Sets a header, replacing its value. */
  set(name: string, value: string | number): this {
    // A value may be the name of another header.
    const at = this.#lines.findIndex((part, nth) => nth % 2 === 0 && part === name)
    if (at < 0) this.#lines.push(name, String(value))
    else this.#lines[at + 1] = String(value)
    return this
  }

  setAll(more: { readonly [name: string]: string | number }): this {
    for (const [name, value] of Object.entries(more)) this.set(name, value)
    return this
  }

  text(status: number): string {
    const lines = this.#lines.map((part, at) => part + (at % 2 ? '\r\n' : ': '))
    return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n`
  }

  write(res: ServerResponse, status: number): ServerResponse {
    return res.writeHead(status, this.#lines)
  }
}

/** The head of a JSON answer that is written to a socket without a response object; the connection closes after it. */
export const headOf = (status: number, bytes: number): string =>
  new Lines()
    .setAll({ 'content-type': 'application/json; charset=utf-8', 'content-length': bytes, connection: 'close' })
    .text(status)
