import { createHash } from 'node:crypto'
import type { DocumentFormat } from './document-format.js'
import { notebookText } from './notebook.js'
import { markdownTable, separatedRows } from './tables.js'
import { workbookText } from './workbook.js'

/** The text form of a document, or why there is none. */
export type Derivation =
  | {
      readonly markdown: string
      readonly title?: string
      readonly notes: readonly string[]
      readonly parts?: number
      readonly truncated: boolean
    }
  | { readonly failed: string }

const MOST_MARKDOWN = 1024 * 1024
const HASH_DIGITS = 12

const hashOf = (base64: string): string =>
  createHash('sha256').update(Buffer.from(base64, 'base64')).digest('hex').slice(0, HASH_DIGITS)

/** Parts that a generator adds or that change with each save. */
const cleaned = (markdown: string): string =>
  markdown
    .replace(/^---\n[\s\S]*?\n---\n+/, '')
    .replace(/^(#{1,6} .*?) \{#[^}\n]*\}$/gm, '$1')
    .replace(/<a id="[^"]*"><\/a>\n*/g, '')
    .replace(/\(data:[\w/+.-]+;base64,([\w+/=]*)\)/g, (_, data: string) => `(image ${hashOf(data)})`)
    .trim()

const officeText = async (bytes: Buffer, format: DocumentFormat) => {
  const { parseOffice } = await import('officeparser')
  const ast = await parseOffice(bytes, {
    fileType: format as 'docx',
    extractAttachments: format !== 'pdf',
    ocr: false,
    ignoreSlideMasters: true,
    decompressionLimits: { maxUncompressedBytes: 256 * 1024 * 1024 },
    pdfParserConfig: { separateProcess: false },
  })
  const { value } = await ast.to('md')
  const { title } = ast.metadata
  const images = ast.attachments.filter(({ type }) => type === 'image').length
  return {
    markdown: cleaned(value as string),
    ...(title && { title }),
    notes: images > 0 ? [`${images} ${images === 1 ? 'image' : 'images'}`] : [],
  }
}

const subtitles = (text: string): string =>
  text
    .replace(/^\ufeff?WEBVTT.*$/m, '')
    .split(/\r?\n/)
    .filter(line => !/-->/.test(line) && !/^\d+$/.test(line.trim()))
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()

const textOf = async (bytes: Buffer, format: DocumentFormat) => {
  switch (format) {
    case 'ipynb':
      return notebookText(bytes.toString())
    case 'csv':
    case 'tsv':
      return markdownTable(separatedRows(bytes.toString().replace(/^\ufeff/, ''), format === 'csv' ? ',' : '\t'))
    case 'xlsx':
      return workbookText(bytes)
    case 'subtitles':
      return { markdown: subtitles(bytes.toString()), notes: [] }
    default:
      return officeText(bytes, format)
  }
}

const derived = async (bytes: Buffer, format: DocumentFormat): Promise<Derivation> => {
  try {
    const { markdown, ...rest } = await textOf(bytes, format)
    const truncated = Buffer.byteLength(markdown) > MOST_MARKDOWN
    const shown = truncated
      ? Buffer.from(markdown)
          .subarray(0, MOST_MARKDOWN - 3)
          .toString()
          .replace(/\ufffd+$/, '')
      : markdown
    return { markdown: shown.toWellFormed(), ...rest, truncated }
  } catch (error) {
    return { failed: (error as Error).message.replace(/\[OfficeParser\]:\s*/g, '').slice(0, 300) }
  }
}

const pieces: Buffer[] = []
for await (const piece of process.stdin) pieces.push(piece as Buffer)
const input = Buffer.concat(pieces)
const end = input.indexOf(10)
const format = input.subarray(0, end).toString() as DocumentFormat
process.stdout.write(JSON.stringify(await derived(input.subarray(end + 1), format)), () => process.exit(0))
