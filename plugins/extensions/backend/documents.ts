import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { ignored, refuse, Refusal } from '../../../sdk/index.js'
import { contains } from '../../../sdk/node/files/paths.js'
import { LinkError } from '../../../sdk/node/extension/link.js'
import { LINK_PIECE } from '../../../sdk/node/extension/protocol.js'
import type { ExtensionRecords } from '../runtime.js'
import type { DocumentAsked, DocumentFailure, DocumentText, DocumentType } from './contract.js'
import type { ExtensionBackend } from './backend.js'
import type { Backends } from './runtime.js'

/** The dependencies of deriving documents. */
export interface DocumentDeps {
  readonly backends: Backends
  readonly records: Pick<ExtensionRecords, 'refused'>
  readonly data: string
  readonly limitMs?: number
}

const MOST_FILE = 20 * 1024 * 1024
const LIMIT_MS = 30_000
const MOST_REASON = 300

const typesOf = ({ extension: { id, revision, manifest }, documents }: ExtensionBackend): DocumentType[] =>
  (manifest.contributes?.documents ?? [])
    .filter(document => documents.has(document.id))
    .flatMap(({ id: document, label, extensions = [] }) =>
      extensions.map(ending => ({ ending, extension: id, document, label, revision })),
    )

/** The types of files of which backends derive a text now; of two for one ending the first. */
export const documentTypes = ({ backends, records }: Pick<DocumentDeps, 'backends' | 'records'>): DocumentType[] => {
  const types = backends.all
    .filter(({ process, extension }) => process && records.refused(extension.id) === undefined)
    .flatMap(typesOf)
  return [...new Map(types.toReversed().map(type => [type.ending, type])).values()].toReversed()
}

/** Derives the text of one file. What an extension does wrong is a reason, never a failure of the caller. */
export const derivedDocument = async (
  { backends, records, data, limitMs = LIMIT_MS }: DocumentDeps,
  { extension, document, name, file }: DocumentAsked,
  signal: AbortSignal,
): Promise<DocumentText | DocumentFailure> => {
  if (!contains(data, resolve(file))) refuse('invalid', `expected a path in the data folder, found ${file}`)
  const failed = (why: string, passing = false): DocumentFailure => ({
    failed: `the extension ${extension} ${shownText(why).slice(0, MOST_REASON)}`,
    passing,
  })
  if (records.refused(extension) !== undefined) return failed('does not run', true)
  if ((await stat(file)).size > MOST_FILE) return failed(`gets no files of more than ${MOST_FILE / 1024 / 1024} MiB`)
  const late = AbortSignal.timeout(limitMs)
  const within = AbortSignal.any([signal, late])
  const pieces = createReadStream(file, { highWaterMark: LINK_PIECE })
  pieces.on('error', ignored('it fails for its reader'))
  let running: ExtensionBackend | undefined
  try {
    const backend = backends.of(extension)
    const { link } = await backend.running(within)
    running = backend
    const bytes = link.offer(pieces)
    try {
      const asked = { id: document, name: basename(name), bytes }
      const { markdown, title, notes = [] } = await link.request('document', asked, within)
      const text = { markdown: shownText(markdown), notes: notes.map(shownText) }
      return title === undefined ? text : { ...text, title: shownText(title) }
    } finally {
      link.withdraw(bytes)
    }
  } catch (error) {
    signal.throwIfAborted()
    if (late.aborted) return failed(`did not read it within ${limitMs / 1000} s`)
    if (error instanceof LinkError) return failed(`could not read it: ${error.message.replace(/^Error: /, '')}`)
    if (!(error instanceof Refusal)) throw error
    if (error.reason !== 'unavailable') return failed(`could not read it: ${error.message}`)
    return running ? failed('ended while it read it', running.isStopped) : failed('does not run', true)
  } finally {
    pieces.destroy()
  }
}

/** Text without control characters but for line breaks and tabs. */
const shownText = (text: string): string =>
  text
    .toWellFormed()
    .replace(/\r\n?/g, '\n')
    .replace(/[^\P{Cc}\t\n]/gu, '')
