import { fromBufferPromise, type Entry } from 'yauzl'
import { cellText, MOST_COLUMNS, MOST_TABLE_ROWS } from './tables.js'

const MOST_BYTES = 256 * 1024 * 1024
const MOST_PART = 128 * 1024 * 1024

/** The parts of an office document that are needed, as text; refused when they would unpack to too much. */
const partsOf = async (bytes: Buffer, wanted: (name: string) => boolean): Promise<Map<string, string>> => {
  const zip = await fromBufferPromise(bytes, { lazyEntries: true })
  const entries: Entry[] = []
  await new Promise<void>((resolve, reject) => {
    zip.on('entry', (entry: Entry) => {
      if (wanted(entry.fileName)) entries.push(entry)
      zip.readEntry()
    })
    zip.once('end', resolve).once('error', reject)
    zip.readEntry()
  })
  const parts = new Map<string, string>()
  let all = 0
  for (const entry of entries) {
    all += entry.uncompressedSize
    if (entry.uncompressedSize > MOST_PART) throw new Error(`${entry.fileName} unpacks to more than 128 MiB`)
    if (all > MOST_BYTES) throw new Error('what is read of it unpacks to more than 256 MiB')
    const pieces: Buffer[] = []
    for await (const piece of await zip.openReadStreamPromise(entry)) pieces.push(piece as Buffer)
    parts.set(entry.fileName, Buffer.concat(pieces).toString())
  }
  return parts
}

const ENTITIES: { readonly [name: string]: string } = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

const decoded = (text: string): string =>
  text.replace(/&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(\w{2,4}));/gi, (whole, hex?: string, decimal?: string, name = '') => {
    if (name) return ENTITIES[name as string] ?? whole
    const code = hex ? Number.parseInt(hex, 16) : Number(decimal)
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })

const attribute = (tag: string, name: string): string | undefined => {
  const found = new RegExp(`\\s(?:\\w+:)?${name}="([^"]*)"`).exec(tag)?.[1]
  return found === undefined ? undefined : decoded(found)
}

const textsIn = (xml: string): string =>
  [...xml.matchAll(/<(?:\w+:)?t(?:\s[^>]*)?>([^<]*)<\/(?:\w+:)?t>/g)].map(([, text]) => decoded(text!)).join('')

/** The number of a column from 0: `A` is 0, `AA` is 26. */
const columnOf = (address: string): number =>
  [...(/^[A-Z]{1,3}/.exec(address)?.[0] ?? 'A')].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1

interface Sheet {
  readonly name: string
  readonly xml: string
}

const sheetsOf = (parts: ReadonlyMap<string, string>): Sheet[] => {
  const workbook = parts.get('xl/workbook.xml')
  if (workbook === undefined) throw new Error('it has no workbook')
  const targets = new Map(
    [...(parts.get('xl/_rels/workbook.xml.rels') ?? '').matchAll(/<Relationship\s[^>]*>/g)].map(([tag]) => [
      attribute(tag, 'Id'),
      attribute(tag, 'Target')?.replace(/^\/?(?:xl\/)?/, 'xl/'),
    ]),
  )
  return [...workbook.matchAll(/<(?:\w+:)?sheet\s[^>]*>/g)].flatMap(([tag]) => {
    const xml = parts.get(targets.get(attribute(tag, 'id')) ?? '')
    return xml === undefined ? [] : [{ name: attribute(tag, 'name') ?? '', xml }]
  })
}

const CELL = /<(?:\w+:)?c(\s[^>]*?)(?:\/>|>([\s\S]*?)<\/(?:\w+:)?c>)/g
const ROW = /<(?:\w+:)?row(\s[^>]*?)?(?:\/>|>([\s\S]*?)<\/(?:\w+:)?row>)/g

const valueOf = (tag: string, inner: string, shared: readonly string[]): string => {
  const type = attribute(tag, 't')
  if (type === 'inlineStr') return textsIn(inner)
  const value = decoded(/<(?:\w+:)?v(?:\s[^>]*)?>([^<]*)</.exec(inner)?.[1] ?? '')
  if (type === 's') return shared[Number(value)] ?? ''
  return type === 'b' ? (value === '1' ? 'TRUE' : 'FALSE') : value
}

/** A sheet as lines: a row each, with the addresses of its cells, their values, and their formulas. */
const sheetLines = ({ xml }: Sheet, shared: readonly string[]): { lines: string[]; cut?: number; wide: boolean } => {
  const lines: string[] = []
  let wide = false
  for (const [, head = '', row = ''] of xml.matchAll(ROW)) {
    const number = Number(attribute(head, 'r') ?? lines.length + 1)
    if (number > MOST_TABLE_ROWS) return { lines, cut: MOST_TABLE_ROWS, wide }
    const cells: string[] = []
    for (const [, tag = '', inner = ''] of row.matchAll(CELL)) {
      const address = attribute(tag, 'r') ?? ''
      if (columnOf(address) >= MOST_COLUMNS) {
        wide = true
        continue
      }
      const value = cellText(valueOf(tag, inner, shared))
      const formula = decoded(/<(?:\w+:)?f(?:\s[^>]*)?>([^<]*)</.exec(inner)?.[1] ?? '')
      if (value !== '' || formula !== '')
        cells.push(`${address}: ${value}${formula === '' ? '' : ` =${cellText(formula)}`}`)
    }
    if (cells.length > 0) lines.push(`- ${cells.join(' | ')}`)
  }
  return { lines, wide }
}

/** A workbook as markdown: a section for each sheet, a line for each used row. */
export const workbookText = async (bytes: Buffer): Promise<{ markdown: string; parts: number; notes: string[] }> => {
  const parts = await partsOf(bytes, name =>
    /^xl\/(?:workbook|sharedStrings|worksheets\/[^/]+|_rels\/workbook)\.xml(?:\.rels)?$/.test(name),
  )
  const shared = [
    ...(parts.get('xl/sharedStrings.xml') ?? '').matchAll(/<(?:\w+:)?si(?:\s[^>]*)?>([\s\S]*?)<\/(?:\w+:)?si>/g),
  ].map(([, each]) => textsIn(each!))
  const notes: string[] = []
  const sections = sheetsOf(parts).map(sheet => {
    const { lines, cut, wide } = sheetLines(sheet, shared)
    if (cut !== undefined) notes.push(`sheet ${sheet.name} cut at row ${cut}`)
    if (wide) notes.push(`sheet ${sheet.name} cut at column ${MOST_COLUMNS}`)
    return `## ${sheet.name}\n\n${lines.join('\n')}`
  })
  return { markdown: sections.join('\n\n'), parts: sections.length, notes }
}
