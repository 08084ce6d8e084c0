import { signal, type ReadonlySignal } from '@preact/signals-core'
import { faultSentence } from '../api.js'
import { draftOf, keepDraft } from '../drafts.js'

/** A file that goes with the next message. */
export interface Attached {
  /** Where it is, or will be, in the workspace. */
  readonly path: string
  readonly name: string
  readonly state: 'sending' | 'there' | 'failed'
  readonly fault?: string
}

/** Where people who may start turns can upload files. */
export const UPLOADED = '.sandbox/records/artifacts/attachments'
const MOST = 20
const MOST_NAME = 120

const draftIn = (place: string): string => `${place} files`

const newFolder = (): string =>
  [...crypto.getRandomValues(new Uint32Array(4))].map(one => one.toString(16).padStart(8, '0')).join('')

/** The name of a person's file as the name of a file in the workspace. */
const plainName = (name: string): string => {
  const plain = name.replace(/[\p{C}/\\]/gu, '').replace(/^[. ]+|[. ]+$/g, '')
  const end = /\.[a-zA-Z0-9]{1,10}$/.exec(plain)?.[0] ?? ''
  return plain.length > MOST_NAME ? plain.slice(0, MOST_NAME - end.length) + end : plain || 'file'
}

/** The lists with files that are being uploaded: they go on while another page is shown. */
const underWay = new Map<string, AttachedFiles>()

/** The files that go with the next message of a place. */
export const attachedTo = (place: string): AttachedFiles => underWay.get(place) ?? new AttachedFiles(place)

/** A list of files; those that are uploaded survive a reload. */
export class AttachedFiles {
  readonly #place: string
  readonly #list = signal<readonly Attached[]>([])
  readonly #stops = new Map<string, AbortController>()

  constructor(place: string) {
    this.#place = place
    const kept = draftOf(draftIn(place))
    this.#list.value = kept ? (JSON.parse(kept) as readonly Attached[]) : []
  }

  get list(): ReadonlySignal<readonly Attached[]> {
    return this.#list
  }

  /** Begins to upload files; the result says why some were left out. */
  add(files: readonly File[]): string {
    const room = MOST - this.#list.peek().length
    for (const file of files.slice(0, room)) {
      const path = `${UPLOADED}/${newFolder()}/${plainName(file.name)}`
      const stop = new AbortController()
      this.#stops.set(path, stop)
      underWay.set(this.#place, this)
      this.#set([...this.#list.peek(), { path, name: file.name, state: 'sending' }])
      void import('./uploads.js')
        .then(({ sendFile }) => sendFile({ path, file }, false, stop.signal, () => {}))
        .then(
          () => this.#change(path, { state: 'there' }),
          error => this.#change(path, { state: 'failed', fault: faultSentence(error) }),
        )
        .finally(() => {
          this.#stops.delete(path)
          if (this.#stops.size === 0) underWay.delete(this.#place)
        })
    }
    return files.length > room ? `A message takes ${MOST} files: ${files.length - room} were left out.` : ''
  }

  /** Leaves a file out; the daemon deletes files that no message has after a week. */
  remove(path: string): void {
    this.#stops.get(path)?.abort()
    this.#set(this.#list.peek().filter(one => one.path !== path))
  }

  /** Takes all files out, for the message that is being sent. */
  take(): readonly Attached[] {
    const taken = this.#list.peek()
    this.#set([])
    return taken
  }

  /** Puts files back, of a message that was not sent. */
  putBack(files: readonly Attached[]): void {
    this.#set([...files, ...this.#list.peek()].slice(0, MOST))
  }

  #change(path: string, now: Partial<Attached>): void {
    this.#set(this.#list.peek().map(one => (one.path === path ? { ...one, ...now } : one)))
  }

  #set(list: readonly Attached[]): void {
    this.#list.value = list
    const there = list.filter(({ state }) => state === 'there')
    keepDraft(draftIn(this.#place), there.length ? JSON.stringify(there) : '')
  }
}
