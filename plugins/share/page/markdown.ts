import { marked, type Token, type Tokens } from 'marked'
import { escapedHtml } from '../../../sdk/node/pages/message-page.js'

/** Deeper tokens and longer texts are shown as they were written. */
const DEEPEST = 30
const LONGEST = 100_000
const SAFE = /^(?:https?:\/\/|mailto:)[^\s]+$/i

const ENTITIES: { readonly [name: string]: string } = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
/** The lexer escapes some texts, which are escaped here as a whole. */
const decoded = (text: string): string => text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => ENTITIES[name]!)

/** A text that keeps its lines. */
export const plainHtml = (text: string): string => `<pre dir="auto">${escapedHtml(text)}</pre>`

/** Markdown as HTML of a few elements, which this file alone writes: of the text only characters survive. */
export const markdownHtml = (text: string): string => {
  if (text.length > LONGEST) return plainHtml(text)
  try {
    return all(marked.lexer(text, { gfm: true }), 0)
  } catch {
    return plainHtml(text)
  }
}

/** What a reader sees of such HTML, and copies from it: its characters, and the addresses of its links. */
export const seenIn = (html: string): string => {
  const links = [...html.matchAll(/ href="([^"]*)"/g)].map(([, href]) => `\n${href}`)
  const text = html.replace(/<\/?(?:strong|em|del|code|a)(?: [^>]*)?>/g, '').replace(/<[^>]*>/g, '\n')
  return [text, ...links].join('').replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
}

const all = (tokens: readonly Token[] | undefined, depth: number): string =>
  (tokens ?? []).map(token => html(token, depth + 1)).join('')

const within = (name: string, tokens: readonly Token[] | undefined, depth: number): string =>
  `<${name} dir="auto">${all(tokens, depth)}</${name}>`

const html = (token: Token, depth: number): string => {
  if (depth > DEEPEST) return escapedHtml(token.raw)
  switch (token.type) {
    case 'space':
    case 'def':
      return ''
    case 'paragraph':
      return within('p', token.tokens, depth)
    case 'heading':
      return within(`h${Math.min(6, (token as Tokens.Heading).depth + 2)}`, token.tokens, depth)
    case 'blockquote':
      return within('blockquote', token.tokens, depth)
    case 'strong':
    case 'em':
    case 'del':
      return `<${token.type}>${all(token.tokens, depth)}</${token.type}>`
    case 'codespan':
      return `<code>${escapedHtml(decoded((token as Tokens.Codespan).text))}</code>`
    case 'code':
      return plainHtml((token as Tokens.Code).text)
    case 'br':
      return '<br>'
    case 'hr':
      return '<hr>'
    case 'list':
      return list(token as Tokens.List, depth)
    case 'table':
      return table(token as Tokens.Table, depth)
    case 'link':
      return link(token as Tokens.Link, depth)
    case 'image':
      return `[picture: ${escapedHtml(decoded((token as Tokens.Image).text))}]`
    case 'escape':
    case 'text':
      return 'tokens' in token && token.tokens
        ? all(token.tokens, depth)
        : escapedHtml(decoded((token as Tokens.Text).text))
    default:
      return escapedHtml(token.raw)
  }
}

const list = ({ ordered, items, start }: Tokens.List, depth: number): string => {
  const name = ordered ? 'ol' : 'ul'
  const from = ordered && typeof start === 'number' && start !== 1 ? ` start="${Math.trunc(start)}"` : ''
  const rows = items.map(({ tokens, task, checked }) => {
    const box = task ? (checked ? '☑ ' : '☐ ') : ''
    return `<li dir="auto">${box}${all(tokens, depth)}</li>`
  })
  return `<${name}${from}>${rows.join('')}</${name}>`
}

const table = ({ header, rows }: Tokens.Table, depth: number): string => {
  const row = (name: string, cells: readonly Tokens.TableCell[]) =>
    `<tr>${cells.map(({ tokens }) => within(name, tokens, depth)).join('')}</tr>`
  return `<table>${row('th', header)}${rows.map(cells => row('td', cells)).join('')}</table>`
}

const link = ({ href, tokens }: Tokens.Link, depth: number): string =>
  SAFE.test(href)
    ? `<a href="${escapedHtml(href)}" rel="noopener noreferrer nofollow">${all(tokens, depth)}</a>`
    : all(tokens, depth)
