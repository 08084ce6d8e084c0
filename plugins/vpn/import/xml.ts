import { refuse } from '../../../sdk/index.js'

/** An element of a document, with its own text. */
export interface XmlElement {
  readonly name: string
  readonly children: readonly XmlElement[]
  readonly text: string
}

interface OpenElement {
  readonly name: string
  readonly children: XmlElement[]
  text: string
}

const DEEPEST = 64
const NAMED: { readonly [name: string]: string } = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
const NAME = '[A-Za-z_:][\\w:.-]*'
const ATTRIBUTES = `(?:\\s+${NAME}\\s*=\\s*(?:"[^"<]*"|'[^'<]*'))*\\s*`
/** One piece at a time: a comment, an instruction, literal text, a tag, or text. */
const PIECE = new RegExp(
  [
    '<!--(?:(?!--)[\\s\\S])*-->',
    '<\\?[\\s\\S]*?\\?>',
    '<!\\[CDATA\\[([\\s\\S]*?)\\]\\]>',
    `<(${NAME})${ATTRIBUTES}(/?)>`,
    `</(${NAME})\\s*>`,
    '([^<]+)',
  ].join('|'),
  'y',
)

const wrong = (at: string): never => refuse('invalid', `xml: expected a well-formed document, found ${at}`)

const plain = (text: string): string =>
  text.replace(/&(?:#x([0-9a-fA-F]{1,6})|#(\d{1,7})|(\w{1,20}));|&/g, (whole, hex, decimal, name) => {
    if (name !== undefined) return NAMED[name as string] ?? wrong(`the entity ${whole}, which is not expanded`)
    const code = hex === undefined ? Number(decimal) : Number.parseInt(hex as string, 16)
    return whole === '&' || code > 0x10ffff || code === 0 ? wrong('& without an entity') : String.fromCodePoint(code)
  })

/**
 * Reads a document without attributes. 400: it is not well-formed, or has a document type: no entity is ever expanded
 * but the five of XML itself.
 */
export const parseXml = (source: string): XmlElement => {
  const text = source.replace(/^\uFEFF/, '')
  if (/<!DOCTYPE/i.test(text)) refuse('invalid', 'xml: expected a document without a document type, found <!DOCTYPE')
  const root: OpenElement = { name: '', children: [], text: '' }
  const open: OpenElement[] = [root]
  PIECE.lastIndex = 0
  while (PIECE.lastIndex < text.length) {
    const at = PIECE.lastIndex
    const [, literal, opened, empty, closed, words] = PIECE.exec(text) ?? wrong(`no element at character ${at + 1}`)
    const now = open.at(-1)!
    if (literal !== undefined) now.text += literal
    else if (words !== undefined) now.text += plain(words)
    else if (opened !== undefined) {
      const element: OpenElement = { name: opened, children: [], text: '' }
      now.children.push(element)
      if (empty === '') open.push(element)
      if (open.length > DEEPEST) wrong(`elements more than ${DEEPEST} deep`)
    } else if (closed !== undefined) {
      if (now.name !== closed || now === root) wrong(`</${closed.slice(0, 40)}> at character ${at + 1}`)
      open.pop()
    }
  }
  if (open.length > 1) wrong(`<${open.at(-1)!.name.slice(0, 40)}> without its end`)
  if (root.children.length !== 1 || root.text.trim() !== '') wrong(`${root.children.length} elements at the top`)
  return root.children[0]!
}

/** The elements at a path below one. */
export const elementsAt = (element: XmlElement, ...path: readonly string[]): readonly XmlElement[] =>
  path.reduce<readonly XmlElement[]>(
    (found, name) => found.flatMap(({ children }) => children.filter(child => child.name === name)),
    [element],
  )

/** The text of the first element at a path, without the blanks around it; undefined where there is none. */
export const xmlTextAt = (element: XmlElement, ...path: readonly string[]): string | undefined =>
  elementsAt(element, ...path)[0]?.text.trim() || undefined
