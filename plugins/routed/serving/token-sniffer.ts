import type { CountedTokens } from '../link/messages.js'
import { numberIn, objectIn, jsonOf, type Fields } from '../translate/fields.js'

const MOST_WHOLE = 32 * 1024 * 1024

/** Reads the tokens of an answer that is passed on as it is, in any of the protocols. */
export class TokenSniffer {
  readonly #streamed: boolean
  readonly #decoder = new TextDecoder()
  #rest = ''
  #size = 0
  #tokens: CountedTokens | undefined

  constructor(streamed: boolean) {
    this.#streamed = streamed
  }

  take(piece: Buffer): void {
    if (!this.#streamed) {
      this.#size += piece.length
      if (this.#size <= MOST_WHOLE) this.#rest += this.#decoder.decode(piece, { stream: true })
      return
    }
    const lines = (this.#rest + this.#decoder.decode(piece, { stream: true })).split('\n')
    this.#rest = lines.pop()!
    for (const line of lines) this.#line(line)
  }

  /** The tokens; undefined: the server did not tell. */
  end(): CountedTokens | undefined {
    if (this.#streamed) this.#line(this.#rest)
    else this.#hear(objectIn(jsonOf(this.#rest)))
    return this.#tokens
  }

  #line(line: string): void {
    // Few events tell tokens.
    if (line.startsWith('data:') && line.includes('"usage"')) this.#hear(objectIn(jsonOf(line.slice('data:'.length))))
  }

  #hear(event: Fields | undefined): void {
    const usage = [event, event?.message, event?.response].map(each => objectIn(objectIn(each)?.usage)).find(Boolean)
    if (usage) this.#tokens = tokensIn(usage, this.#tokens)
  }
}

const tokensIn = (usage: Fields, before: CountedTokens | undefined): CountedTokens => {
  const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0 } = before ?? {}
  const count = (...names: string[]) => names.map(name => numberIn(usage[name])).find(each => each !== undefined)
  const details = objectIn(usage.prompt_tokens_details) ?? objectIn(usage.input_tokens_details)
  const cached = numberIn(details?.cached_tokens)
  const read = count('cache_read_input_tokens') ?? cached ?? cacheRead
  const given = count('prompt_tokens', 'input_tokens')
  return {
    // The protocol of messages counts what the cache holds by itself, the others within.
    input: given === undefined ? input : cached === undefined ? given : Math.max(0, given - cached),
    output: count('completion_tokens', 'output_tokens') ?? output,
    cacheRead: read,
    cacheWrite: count('cache_creation_input_tokens') ?? cacheWrite,
  }
}
