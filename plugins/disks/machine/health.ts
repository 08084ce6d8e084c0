import { ownEnv, run } from '../../../sdk/node/programs/run.js'

/** How a mounted share is. */
export interface ShareHealth {
  readonly answers: boolean
  readonly totalBytes?: number
  readonly freeBytes?: number
  /** Why it does not answer. */
  readonly detail?: string
}

const ASK_MS = 3_000
const STAT = '/usr/bin/stat'
const FIND = '/usr/bin/find'
/** What rclone reports for a server that names no size: a pebibyte and more. */
const UNKNOWN_BYTES = 2 ** 50
/** What davfs2 reports for a server that names no size, in blocks. */
const UNKNOWN_BLOCKS = 0x65b9aa

/**
 * Asks mounted shares how they are, with programs of their own: a process that waits for a dead server cannot be ended,
 * so nothing here waits for it, and a share that holds one up is not asked by a second one.
 */
export class ShareHealths {
  readonly #asking = new Map<string, Promise<ShareHealth>>()
  readonly #signal: AbortSignal

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  /** The health of the share at a folder; one that has not answered after `withinMs` does not answer. */
  async of(folder: string, withinMs = ASK_MS): Promise<ShareHealth> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<ShareHealth>(resolve => {
      timer = setTimeout(resolve, withinMs, {
        answers: false,
        detail: `its server did not answer within ${withinMs / 1000} s`,
      })
    })
    try {
      return await Promise.race([this.#asking.get(folder) ?? this.#ask(folder), late])
    } finally {
      clearTimeout(timer)
    }
  }

  #ask(folder: string): Promise<ShareHealth> {
    const asked = this.#asked(folder).catch((error: unknown): ShareHealth => ({
      answers: false,
      detail: `asking it failed: ${String(error)}`,
    }))
    this.#asking.set(folder, asked)
    void asked.then(() => this.#asking.delete(folder))
    return asked
  }

  async #asked(folder: string): Promise<ShareHealth> {
    const options = { cwd: '/', env: await ownEnv({ LC_ALL: 'C' }), signal: this.#signal, maxBytes: 4096 }
    const [sizes, listed] = await Promise.all([
      run(STAT, ['-f', '--format=%b %a %S', '--', folder], options),
      run(FIND, [folder, '-maxdepth', '0', '-empty'], options),
    ])
    const failed = [sizes, listed].find(({ code }) => code !== 0)
    if (failed) return { answers: false, detail: wordsOf(failed.stderr) }
    const [blocks = 0, free = 0, size = 0] = sizes.stdout.toString().trim().split(' ').map(Number)
    const totalBytes = blocks * size
    const known = blocks > 0 && blocks !== UNKNOWN_BLOCKS && totalBytes < UNKNOWN_BYTES
    return { answers: true, ...(known && { totalBytes, freeBytes: free * size }) }
  }
}

/** What a program said, without its name and the path. */
const wordsOf = (said: string): string => {
  const line = said.trim().split('\n').at(-1) ?? ''
  return line.split(': ').at(-1)!.slice(0, 200).toLowerCase() || 'listing it failed'
}
