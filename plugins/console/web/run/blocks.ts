import { Lexer, type Token } from 'marked'

/** One block of a markdown text; a settled block never changes. */
export interface MarkdownBlock {
  readonly raw: string
  readonly token: Token
}

const MOST = 64 * 1024
const DEEPEST = 100

/** Whether a text nests quotes or lists deeper than a parser should follow. */
const isTooDeep = (text: string): boolean => new RegExp(`^(?:[ \\t]*[>*+-]){${DEEPEST}}`, 'm').test(text)

const plain = (raw: string): Token => ({ type: 'code', raw, text: raw, lang: '' }) as Token

const lex = (text: string): Token[] => {
  if (isTooDeep(text)) return [plain(text)]
  try {
    return new Lexer({ gfm: true }).lex(text)
  } catch {
    return [plain(text)]
  }
}

/**
 * The blocks of a growing text: those before the last are parsed once, since what follows a block does not change it.
 */
export class GrowingBlocks {
  #settled: MarkdownBlock[] = []
  #done = 0
  #last: MarkdownBlock[] = []
  #text = ''

  update(given: string): readonly MarkdownBlock[] {
    const text = given.replace(/\r\n?/g, '\n')
    if (text === this.#text) return this.#all()
    if (!text.startsWith(this.#text)) {
      this.#settled = []
      this.#done = 0
    }
    this.#text = text
    const tokens = lex(text.slice(this.#done))
    const blocks = tokens.filter(({ type }) => type !== 'space').map(token => ({ raw: token.raw, token }))
    // Definitions of links count for the whole text, so it is parsed whole.
    const open = tokens.findLastIndex(({ type }) => type !== 'space')
    if (blocks.length < 2 || tokens.some(({ type }) => type === 'def')) {
      this.#last = blocks
      return this.#all()
    }
    this.#settled = [...this.#settled, ...blocks.slice(0, -1)]
    this.#done += tokens.slice(0, open).reduce((sum, { raw }) => sum + raw.length, 0)
    this.#last = blocks.slice(-1)
    return this.#all()
  }

  #all(): readonly MarkdownBlock[] {
    return [...this.#settled, ...this.#last]
  }
}

/** Whether a block is so large that it is shown only on request. */
export const isLargeBlock = ({ raw }: MarkdownBlock): boolean => raw.length > MOST

const SCHEMES = /^(?:https?:|mailto:)/i

/** The address of a link that may be followed; undefined: it is shown as text. */
export const safeHref = (href: string): string | undefined => (SCHEMES.test(href.trim()) ? href.trim() : undefined)
