import { ZipFile } from 'yazl'

/** A ZIP file of some texts or bytes, compressed. */
export const zipOf = async (
  files: { readonly [name: string]: string | Buffer },
  mtime = new Date(0),
): Promise<Buffer> => {
  const zip = new ZipFile()
  for (const [name, content] of Object.entries(files)) zip.addBuffer(Buffer.from(content as string), name, { mtime })
  zip.end()
  const pieces: Buffer[] = []
  for await (const piece of zip.outputStream) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

const XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
const TYPES = `${XML}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`
const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const PACKAGE = 'http://schemas.openxmlformats.org/package/2006/relationships'
const WORD = 'http://schemas.openxmlformats.org/wordprocessingml/2006/main'
const DRAWING = 'http://schemas.openxmlformats.org/drawingml/2006/main'
const SLIDES = 'http://schemas.openxmlformats.org/presentationml/2006/main'

/** A workbook of one sheet `Data`, as spreadsheet programs write one as far as it is read. */
export const workbook = (rows: string, shared: readonly string[] = ['Fish &amp; chips']): Promise<Buffer> =>
  zipOf({
    '[Content_Types].xml': TYPES,
    'xl/workbook.xml': '<workbook><sheets><sheet name="Data" sheetId="1" r:id="rId1"/></sheets></workbook>',
    'xl/_rels/workbook.xml.rels':
      '<Relationships><Relationship Id="rId1" Target="worksheets/sheet1.xml"/></Relationships>',
    'xl/sharedStrings.xml': `<sst>${shared.map(text => `<si><t>${text}</t></si>`).join('')}</sst>`,
    'xl/worksheets/sheet1.xml': `<worksheet><sheetData>${rows}</sheetData></worksheet>`,
  })

const DRAWINGS = 'http://schemas.openxmlformats.org/drawingml/2006'
const CORE = 'http://schemas.openxmlformats.org/package/2006/metadata/core-properties'

/** The relations of a part to others, numbered `rId1` and on. */
const relations = (all: readonly (readonly [type: string, target: string])[]): string =>
  `${XML}<Relationships xmlns="${PACKAGE}">${all
    .map(([type, target], at) => `<Relationship Id="rId${at + 1}" Type="${OFFICE}/${type}" Target="${target}"/>`)
    .join('')}</Relationships>`

const pictureAt = (at: number): string =>
  [
    '<w:p><w:r><w:drawing><wp:inline><a:graphic><a:graphicData><pic:pic>',
    `<pic:nvPicPr><pic:cNvPr id="${at}" name="Picture ${at + 1}"/></pic:nvPicPr>`,
    `<pic:blipFill><a:blip r:embed="rId${at + 1}"/></pic:blipFill>`,
    '</pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>',
  ].join('')

/** A text document: paragraphs as text, or as XML, and pictures at its end. */
export const textDocument = (
  paragraphs: readonly string[],
  pictures: readonly Buffer[] = [],
  saved = new Date(0),
): Promise<Buffer> => {
  const body = [
    ...paragraphs.map(text => `<w:p>${text.startsWith('<') ? text : `<w:r><w:t>${text}</w:t></w:r>`}</w:p>`),
    ...pictures.map((_, at) => pictureAt(at)),
  ].join('')
  const spaces = [
    `xmlns:w="${WORD}" xmlns:r="${OFFICE}" xmlns:a="${DRAWING}"`,
    `xmlns:pic="${DRAWINGS}/picture" xmlns:wp="${DRAWINGS}/wordprocessingDrawing"`,
  ].join(' ')
  const properties = `<dcterms:modified>${saved.toISOString()}</dcterms:modified>`
  const named = `xmlns:cp="${CORE}" xmlns:dcterms="http://purl.org/dc/terms/"`
  return zipOf(
    {
      '[Content_Types].xml': TYPES,
      '_rels/.rels': relations([['officeDocument', 'word/document.xml']]),
      'docProps/core.xml': `${XML}<cp:coreProperties ${named}>${properties}</cp:coreProperties>`,
      'word/document.xml': `${XML}<w:document ${spaces}><w:body>${body}</w:body></w:document>`,
      'word/_rels/document.xml.rels': relations(pictures.map((_, at) => ['image', `media/image${at + 1}.png`])),
      ...Object.fromEntries(pictures.map((bytes, at) => [`word/media/image${at + 1}.png`, bytes])),
    },
    saved,
  )
}

/** One slide: its texts, and what the speaker is to say. */
export interface SlideText {
  readonly texts: readonly string[]
  readonly notes?: string
}

const shape = (text: string, type = ''): string =>
  [
    `<p:sp><p:nvSpPr><p:nvPr>${type && `<p:ph type="${type}"/>`}</p:nvPr></p:nvSpPr>`,
    `<p:txBody><a:p><a:r><a:t>${text}</a:t></a:r></a:p></p:txBody></p:sp>`,
  ].join('')
const tree = (kind: string, shapes: string): string =>
  [
    `${XML}<p:${kind} xmlns:p="${SLIDES}" xmlns:a="${DRAWING}" xmlns:r="${OFFICE}">`,
    `<p:cSld><p:spTree>${shapes}</p:spTree></p:cSld></p:${kind}>`,
  ].join('')

/** A presentation of some slides; `order` is the order in which they are shown. */
export const presentation = (
  slides: readonly SlideText[],
  order: readonly number[] = slides.map((_, at) => at),
): Promise<Buffer> => {
  const files: { [name: string]: string } = {
    '[Content_Types].xml': TYPES,
    '_rels/.rels': relations([['officeDocument', 'ppt/presentation.xml']]),
    'ppt/presentation.xml': `${XML}<p:presentation xmlns:p="${SLIDES}" xmlns:r="${OFFICE}"><p:sldIdLst>${order
      .map((slide, at) => `<p:sldId id="${256 + at}" r:id="rId${slide + 1}"/>`)
      .join('')}</p:sldIdLst></p:presentation>`,
    'ppt/_rels/presentation.xml.rels': relations(slides.map((_, at) => ['slide', `slides/slide${at + 1}.xml`])),
  }
  for (const [at, { texts, notes }] of slides.entries()) {
    files[`ppt/slides/slide${at + 1}.xml`] = tree('sld', texts.map(text => shape(text)).join(''))
    if (notes === undefined) continue
    files[`ppt/slides/_rels/slide${at + 1}.xml.rels`] = relations([
      ['notesSlide', `../notesSlides/notesSlide${at + 1}.xml`],
    ])
    files[`ppt/notesSlides/notesSlide${at + 1}.xml`] = tree('notes', shape(notes, 'body'))
  }
  return zipOf(files)
}
