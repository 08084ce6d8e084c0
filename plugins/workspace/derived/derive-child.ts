import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MOST_MARKDOWN, type DocumentFormat } from './document-format.js'
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
  /** `passing`: what reads it was not there, so another time it may be. */
  | { readonly failed: string; readonly passing?: boolean }

/** What a document is read as, and the program that converts older formats. */
export interface DeriveOrder {
  readonly format: DocumentFormat
  readonly program?: string
}

const HASH_DIGITS = 12

const hashOf = (base64: string): string =>
  createHash('sha256').update(Buffer.from(base64, 'base64')).digest('hex').slice(0, HASH_DIGITS)

/** Parts that a generator adds or that change with each save. */
const cleaned = (markdown: string): string =>
  markdown
    .replace(/^---\n(?:[\w-]+:.*\n|[ \t-].*\n)*---\n+/, '')
    .replace(/^(#{1,6} .*?) \{#[^}\n]*\}$/gm, '$1')
    .replace(/<a id="[^"]*"><\/a>\n*/g, '')
    .replace(/\(data:[\w/+.-]+;base64,([\w+/=]*)\)/g, (_, data: string) => `(image ${hashOf(data)})`)
    .trim()

/** What the parts of a document are counted by. */
const PARTS: ReadonlySet<string> = new Set(['slide', 'page', 'sheet'])

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
  const parts = ast.content.filter(({ type }) => PARTS.has(type)).length
  return {
    markdown: cleaned(value as string),
    ...(title && { title }),
    ...(parts > 0 && { parts }),
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

const NEWER: { readonly [format: string]: DocumentFormat } = { doc: 'docx', xls: 'xlsx', ppt: 'pptx' }

/** A document of an older format as LibreOffice writes it in the newer one; the folder is gone with the wall. */
const converted = async (bytes: Buffer, format: DocumentFormat, program: string): Promise<Buffer> => {
  const folder = await mkdtemp(join(tmpdir(), 'convert-'))
  const document = join(folder, `document.${format}`)
  await writeFile(document, bytes)
  const profile = `-env:UserInstallation=file://${folder}/profile`
  const to = NEWER[format]!
  const args = [profile, '--headless', '--norestore', '--convert-to', to, '--outdir', folder, document]
  const { promise, resolve } = Promise.withResolvers<string>()
  execFile(program, args, { env: { ...process.env, HOME: folder } }, (error, stdout, stderr) =>
    resolve(error ? `${error.message} ${stderr}` : stdout),
  )
  const said = await promise
  return readFile(join(folder, `document.${to}`)).catch(() => {
    throw new Error(`LibreOffice could not read it: ${said.trim().split('\n').at(-1)!.slice(0, 200)}`)
  })
}

const pieces: Buffer[] = []
for await (const piece of process.stdin) pieces.push(piece as Buffer)
const input = Buffer.concat(pieces)
const end = input.indexOf(10)
const { format, program } = JSON.parse(input.subarray(0, end).toString()) as DeriveOrder
const bytes = input.subarray(end + 1)
const answer =
  program === undefined
    ? await derived(bytes, format)
    : await converted(bytes, format, program).then(
        newer => derived(newer, NEWER[format]!),
        (error: Error): Derivation => ({ failed: error.message }),
      )
process.stdout.write(JSON.stringify(answer), () => process.exit(0))
