import { signal } from '@preact/signals-core'
import { Refusal } from '../../../../../sdk/refusal.js'
import { askDaemon, faultSentence } from '../api.js'

/** A file that is being uploaded. */
export interface RunningUpload {
  readonly id: number
  readonly path: string
  readonly size: number
  readonly sent: number
  readonly state: 'sending' | 'waiting' | 'done' | 'failed'
  readonly fault?: string
}

/** A file of the person's machine and where it goes. */
export interface UploadedFile {
  readonly path: string
  readonly file: File
}

/** Uploads of this page; those that are done leave after a moment. */
export const uploads = signal<readonly RunningUpload[]>([])

const PART = 4 * 1024 * 1024
const SHOWN_MS = 4_000
const FIRST_MS = 1_000
const MOST_MS = 15_000
const stops = new Map<number, AbortController>()
let lastId = 0
let tail: Promise<unknown> = Promise.resolve()

const change = (id: number, now: Partial<RunningUpload>): void => {
  uploads.value = uploads.value.map(one => (one.id === id ? { ...one, ...now } : one))
}

/** Takes an upload off the list, and ends it where it is under way. */
export const dropUpload = (id: number): void => {
  stops.get(id)?.abort()
  uploads.value = uploads.value.filter(one => one.id !== id)
}

const base64 = (bytes: Uint8Array): string => {
  let text = ''
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192))
  return btoa(text)
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    })
  })

/** How far a file that is being sent is. */
type SendProgress = Pick<RunningUpload, 'state'> & { readonly sent?: number }

/** Sends a file part by part, from where the daemon has it up to; without an answer it goes on when there is one. */
export const sendFile = async (
  { path, file }: UploadedFile,
  replace: boolean,
  signal: AbortSignal,
  told: (progress: SendProgress) => void,
): Promise<void> => {
  const { size } = file
  const named = { path, size, mtime: Math.max(0, file.lastModified), ...(!replace && { baseHash: 'absent' as const }) }
  let offset: number | undefined
  let wait = FIRST_MS
  while (true) {
    try {
      signal.throwIfAborted()
      const part = offset === undefined ? new Uint8Array() : await bytesOf(file, offset)
      const asked = { ...named, offset: offset ?? 0, content: base64(part) }
      const { received, done } = await askDaemon('POST /workspace/upload', asked, signal)
      offset = received
      wait = FIRST_MS
      told({ sent: received, state: done ? 'done' : 'sending' })
      if (done) return
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof Refusal) || !['unavailable', 'too-many'].includes(error.reason)) throw error
      told({ state: 'waiting' })
      await pause(wait, signal)
      wait = Math.min(wait * 2, MOST_MS)
      offset = undefined
    }
  }
}

const bytesOf = async (file: File, offset: number): Promise<Uint8Array> =>
  new Uint8Array(await file.slice(offset, offset + PART).arrayBuffer())

/** Uploads files one after the other; `replace` says that files which are there may be replaced. */
export const uploadFiles = (files: readonly UploadedFile[], replace: boolean): void => {
  for (const one of files) {
    const id = (lastId += 1)
    const stop = new AbortController()
    stops.set(id, stop)
    uploads.value = [...uploads.value, { id, path: one.path, size: one.file.size, sent: 0, state: 'waiting' }]
    tail = tail
      .then(() => sendFile(one, replace, stop.signal, progress => change(id, progress)))
      .then(
        () => void setTimeout(() => dropUpload(id), SHOWN_MS),
        error => {
          if (!stop.signal.aborted) change(id, { state: 'failed', fault: faultSentence(error) })
        },
      )
      .finally(() => stops.delete(id))
  }
}

/** The files that need not be sent: they are there already with the same size and time. */
export const filesThere = async (files: readonly UploadedFile[]): Promise<ReadonlySet<string>> => {
  const skip = new Set<string>()
  for (let at = 0; at < files.length; at += 20_000) {
    const named = files
      .slice(at, at + 20_000)
      .map(({ path, file }) => ({ path, size: file.size, mtime: Math.max(0, file.lastModified) }))
    for (const path of (await askDaemon('POST /workspace/upload-diff', { files: named })).skip) skip.add(path)
  }
  return skip
}

interface DroppedEntry {
  readonly isFile: boolean
  readonly name: string
  readonly fullPath: string
  file?(done: (file: File) => void, failed: (error: Error) => void): void
  createReader?(): { readEntries(done: (entries: DroppedEntry[]) => void, failed: (error: Error) => void): void }
}

const walk = async (entry: DroppedEntry): Promise<UploadedFile[]> => {
  if (entry.isFile) {
    const file = await new Promise<File>((done, failed) => entry.file!(done, failed))
    return [{ path: entry.fullPath.replace(/^\//, ''), file }]
  }
  const reader = entry.createReader!()
  const found: UploadedFile[] = []
  // A reader gives a part of the folder at a time, and nothing at its end.
  while (true) {
    const entries = await new Promise<DroppedEntry[]>((done, failed) => reader.readEntries(done, failed))
    if (entries.length === 0) return found
    for (const below of entries) found.push(...(await walk(below)))
  }
}

/** What was dropped, folders with all below them. */
export const droppedFiles = async (transfer: DataTransfer): Promise<UploadedFile[]> => {
  // The entries are gone after the event: they are taken before anything is awaited.
  const entries = [...transfer.items].flatMap(item => (item.webkitGetAsEntry() as DroppedEntry | null) ?? [])
  const plain = [...transfer.files].map(file => ({ path: file.name, file }))
  return entries.length ? (await Promise.all(entries.map(walk))).flat() : plain
}
