import { createWriteStream } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Context as KoaContext } from 'koa'
import { Refusal } from '../../sdk/refusal.js'
import type { BodyForm } from '../manifest.js'
import { bodyIncomplete, bodyTooLarge, named } from './input.js'

/** An uploaded file, on the disk until the call is answered. */
export interface ReceivedFile {
  readonly path: string
  /** The client's name for the file: any text, never to be used as a path. */
  readonly name: string
  readonly type: string
  readonly bytes: number
}

/** The fields of a body that is not JSON; `removeFiles` deletes its uploaded files. */
export interface Form {
  readonly fields: ReadonlyMap<string, readonly unknown[]>
  readonly removeFiles: () => Promise<void>
}

const TYPES: { readonly [form in BodyForm]: string } = {
  text: 'text/*',
  form: 'application/x-www-form-urlencoded',
  multipart: 'multipart/form-data',
  bytes: 'application/octet-stream',
  raw: '*/*',
  binary: '*/*',
}
const FIELDS = 1000
const FILES = 20
const SILENCE = 30_000

/**
 * Reads a body of one of the types that the call takes besides JSON; undefined if the body has another type. A text
 * becomes the field `text`.
 */
export const readForm = async (
  ctx: KoaContext,
  forms: readonly BodyForm[],
  limit: number,
  folder: string,
): Promise<Form | undefined> => {
  if (forms.includes('raw')) return readAny(ctx, limit, 'utf8')
  if (forms.includes('binary')) return readAny(ctx, limit, 'base64')
  const form = forms.find(one => ctx.request.is(TYPES[one]))
  if (!form) return undefined
  if (Number(ctx.req.headers['content-length']) > limit) throw bodyTooLarge(limit)
  if (form === 'bytes') return readRaw(ctx, limit, await received(folder))
  const { koaBody, HttpMethodEnum } = await import('koa-body')
  const place = form === 'multipart' ? await received(folder) : undefined
  const removeFiles = async () => void (place && (await rm(place, { recursive: true, force: true })))
  const read = koaBody({
    // Read as text and parsed like a query: the library's form parser turns some names into objects and drops others.
    json: false,
    urlencoded: false,
    text: form !== 'multipart',
    textTypes: [TYPES[form]],
    textLimit: limit,
    multipart: form === 'multipart',
    parsedMethods: Object.values(HttpMethodEnum),
    formidable: {
      ...(place && { uploadDir: place }),
      maxFields: FIELDS,
      maxFiles: FILES,
      maxFieldsSize: limit,
      maxFileSize: limit,
      maxTotalFileSize: limit,
      allowEmptyFiles: true,
      minFileSize: 0,
    },
  })
  ctx.req.setTimeout(SILENCE, () => ctx.req.destroy())
  try {
    await read(ctx, async () => {})
    return { fields: fieldsOf(ctx, form), removeFiles }
  } catch (error) {
    await removeFiles()
    throw refusalOf(error, limit)
  } finally {
    ctx.req.setTimeout(0)
  }
}

/** Keeps a body as a file. */
const readRaw = async (ctx: KoaContext, limit: number, place: string): Promise<Form> => {
  const path = join(place, 'body')
  const removeFiles = () => rm(place, { recursive: true, force: true })
  let bytes = 0
  const counted = async function* (parts: AsyncIterable<Buffer>) {
    for await (const part of parts) {
      bytes += part.length
      yield part
    }
  }
  try {
    await withParts(ctx, limit, parts => pipeline(counted(parts), createWriteStream(path, { mode: 0o600 })))
    const file: ReceivedFile = { path, name: '', type: TYPES.bytes, bytes }
    return { fields: besideQuery(ctx, 'bytes', file), removeFiles }
  } catch (error) {
    await removeFiles()
    throw error
  }
}

/** Keeps a body of any type, as text or in base64. */
const readAny = async (ctx: KoaContext, limit: number, as: 'utf8' | 'base64'): Promise<Form> => {
  const text = await withParts(ctx, limit, async parts => {
    const all: Buffer[] = []
    for await (const part of parts) all.push(part)
    return Buffer.concat(all).toString(as)
  })
  return { fields: besideQuery(ctx, 'body', text), removeFiles: async () => {} }
}

const besideQuery = ({ querystring }: KoaContext, field: string, value: unknown): Form['fields'] =>
  new Map<string, readonly unknown[]>([...named(new URLSearchParams(querystring)), [field, [value]]])

/** Reads the parts of a body, within a limit. */
const withParts = async <T>(
  { req }: KoaContext,
  limit: number,
  read: (parts: AsyncIterable<Buffer>) => Promise<T>,
): Promise<T> => {
  let bytes = 0
  const parts = async function* () {
    for await (const part of req.iterator({ destroyOnReturn: false })) {
      if ((bytes += (part as Buffer).length) > limit) throw bodyTooLarge(limit)
      yield part as Buffer
    }
  }
  req.setTimeout(SILENCE, () => req.destroy())
  try {
    return await read(parts())
  } catch (error) {
    req.resume()
    throw req.complete || error instanceof Refusal ? error : bodyIncomplete()
  } finally {
    req.setTimeout(0)
  }
}

const received = async (folder: string): Promise<string> => {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  return mkdtemp(join(folder, 'form-'))
}

const fieldsOf = ({ request }: KoaContext, form: BodyForm): Form['fields'] => {
  const body = request.body as string | { [field: string]: unknown }
  if (typeof body === 'string') return form === 'text' ? new Map([['text', [body]]]) : named(new URLSearchParams(body))
  const files = Object.entries(request.files ?? {}).map(([field, file]) => [field, [file].flat().map(fileOf)] as const)
  return new Map([...Object.entries(body).map(([field, value]) => [field, [value].flat()] as const), ...files])
}

/** A file as the form parser describes it. */
interface Parsed {
  readonly filepath: string
  readonly originalFilename: string | null
  readonly mimetype: string | null
  readonly size: number
}

const fileOf = ({ filepath, originalFilename, mimetype, size }: Parsed): ReceivedFile => ({
  path: filepath,
  name: originalFilename ?? '',
  type: mimetype ?? 'application/octet-stream',
  bytes: size,
})

/** Maps the parser's error status to a refusal: 413 too large, 415 unsupported encoding, other 4xx an invalid body. */
const refusalOf = (error: unknown, limit: number): unknown => {
  const { status, httpCode = status, message } = error as { status?: number; httpCode?: number; message: string }
  if (error instanceof Refusal || httpCode === undefined || httpCode >= 500) return error
  if (httpCode === 413) return bodyTooLarge(limit)
  return new Refusal(httpCode === 415 ? 'unsupported' : 'invalid', `the body cannot be read: ${message.slice(0, 120)}`)
}
