import { refuse, type Host } from '../../../sdk/index.js'
import { programNamed } from '../../../sdk/node/programs/installed-at.js'
import { programFile } from '../../../sdk/node/programs/package.js'
import { OverMemory, runConfined } from '../confined.js'
import type { Derivation, DeriveOrder } from './derive-child.js'
import { isCompound, isOlder, type DocumentFormat } from './document-format.js'

const CHILD = programFile('plugins/workspace/derived/derive-child.js')
const MOST_OUTPUT = 16 * 1024 * 1024
const LFS = 'version https://git-lfs.github.com/spec/'

/** The options of reading a document. */
export interface FormatReading {
  readonly limitMs: number
  readonly signal: AbortSignal
}

/** Reads a document in a format that the sandbox knows, in a process behind the wall. */
export const readFormat = async (
  place: Host['place'],
  format: DocumentFormat,
  bytes: Buffer,
  options: FormatReading,
): Promise<Derivation> => {
  if (isOlder(format)) {
    const program = await officeProgram()
    return program === undefined ? refuseWithoutOffice(format) : confined(place, { format, program }, bytes, options)
  }
  if (isCompound(bytes) && format !== 'rtf') return { failed: 'it is encrypted, or in an older binary format' }
  if (isLfsPointer(bytes)) return { failed: LFS_REASON }
  return confined(place, { format }, bytes, options)
}

const LFS_REASON = 'its content is in Git LFS, and only the pointer to it is here'

const isLfsPointer = (bytes: Buffer): boolean => bytes.toString('latin1', 0, LFS.length) === LFS

const confined = async (
  place: Host['place'],
  order: DeriveOrder,
  bytes: Buffer,
  { limitMs, signal }: FormatReading,
): Promise<Derivation> => {
  try {
    const { code, stdout, stderr, timedOut, truncated } = await runConfined(place, CHILD, {
      input: Buffer.concat([Buffer.from(`${JSON.stringify(order)}\n`), bytes]),
      timeoutMs: limitMs,
      maxBytes: MOST_OUTPUT,
      signal,
    })
    if (timedOut) return { failed: `it could not be read within ${limitMs / 1000} s` }
    if (code !== 0 || truncated)
      return { failed: `reading it ended with ${code}${/heap/i.test(stderr) ? ': it took too much memory' : ''}` }
    return JSON.parse(stdout.toString()) as Derivation
  } catch (error) {
    if (error instanceof OverMemory) return { failed: error.message }
    throw error
  }
}

/** The program that reads older binary formats; undefined: it is not installed. */
export const officeProgram = async (): Promise<string | undefined> =>
  (await programNamed('soffice')) ?? (await programNamed('libreoffice'))

/** Refuses to read an older format on a machine that lacks the program for it. */
export const refuseWithoutOffice = (format: string): never =>
  refuse(
    'missing-program',
    `reading .${format} files needs LibreOffice (soffice), which is not installed: on Debian, apt-get install `
      + 'libreoffice-core-nogui libreoffice-writer-nogui libreoffice-calc-nogui libreoffice-impress-nogui',
  )
