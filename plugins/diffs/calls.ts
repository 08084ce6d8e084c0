import { createReadStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, type Context, type Handlers, type Host, type SidePair } from '../../sdk/index.js'
import { Semaphore } from '../../sdk/node/concurrency/semaphore.js'
import { isActiveType, mediaTypeOf } from '../../sdk/node/files/media-type.js'
import type { DiffPair, DiffsCalls } from './contract.js'
import { documentsIn } from './documents.js'
import { MOST_RENDERED, renderedDiff } from './rendering.js'
import { changedIn, sidesOf } from './sources.js'

const MOST_RAW = 25 * 1024 * 1024
const PIECE = 256 * 1024
const UNREAD_MS = 30_000
/** A side is held in memory while it is read. */
const READ_AT_ONCE = 2

/** Serves what changed in files that are not text. */
export const diffCalls = (host: Host, folder: string): Handlers<DiffsCalls> => {
  const reading = new Semaphore(READ_AT_ONCE)

  /** Both sides in a folder of their own; the caller removes it. */
  const read = async (pair: DiffPair, most: number, context: Context): Promise<{ sides: SidePair; own: string }> => {
    const own = await mkdtemp(join(folder, 'pair-'))
    try {
      return { own, sides: await reading.run(() => sidesOf(host, pair, { folder: own, most }, context)) }
    } catch (error) {
      await removed(own)
      throw error
    }
  }

  return {
    'GET /diff/rendered': async (pair, context) => {
      const { sides, own } = await read(pair, MOST_RENDERED, context)
      try {
        return await renderedDiff(host, sides, context)
      } finally {
        await removed(own)
      }
    },

    'GET /diff/raw': async ({ which, ...pair }, context) => {
      const { sides, own } = await read(pair, MOST_RAW, context)
      const { file, hash, size } = sides[which] ?? {}
      const name = (which === 'before' ? sides.from : undefined) ?? sides.path
      if (file === undefined) {
        await removed(own)
        if (sides[which]) refuse('too-large', `this side of ${name} is larger than 25 MiB`)
        return refuse('not-found', `${name} has no such side: it was ${which === 'before' ? 'added' : 'deleted'}`)
      }
      const type = (await mediaTypeOf(name)) ?? 'application/octet-stream'
      // A request for the headers alone reads nothing.
      const unread = setTimeout(() => void removed(own), UNREAD_MS)
      unread.unref()
      const data = async function* () {
        clearTimeout(unread)
        try {
          for await (const piece of createReadStream(file, { highWaterMark: PIECE })) yield piece as Buffer
        } finally {
          await removed(own)
        }
      }
      return {
        'content-type': type,
        headers: {
          etag: `"${hash}"`,
          'cache-control': 'no-store',
          'content-length': String(size),
          'x-content-type-options': 'nosniff',
          ...(isActiveType(type) && { 'content-security-policy': 'sandbox' }),
        },
        data: data(),
      }
    },

    'GET /diff/documents': async ({ limit = 200, after, ...source }, context) =>
      documentsIn(host, await changedIn(host, source, context), { limit, after }, context),
  }
}

const removed = (folder: string): Promise<void> => rm(folder, { recursive: true, force: true })
