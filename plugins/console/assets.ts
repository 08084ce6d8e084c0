import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../sdk/index.js'
import type { ConsoleAsset } from './contract.js'
import { framePolicy, WORKER_POLICY } from './policy.js'

const TYPES: { readonly [ending: string]: ConsoleAsset['content-type'] } = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml; charset=utf-8',
}
const FRAME = 'frame.html'
const WORKER = 'service-worker.js'
/** Browsers look for a newer worker at its address, which therefore contains no hash. */
const WORKER_HEADERS = { 'content-security-policy': WORKER_POLICY, 'cache-control': 'no-cache' }
/** The encodings that are made at build, best first, and the ending of their files. */
const ENCODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

/** One file as it is sent. */
export interface SentAsset {
  readonly 'content-type': ConsoleAsset['content-type']
  readonly data: Uint8Array
  readonly headers: { readonly [name: string]: string }
}

/** The built files of the console: a list that is read once, and contents that are read when asked for. */
export class ConsoleAssets {
  readonly #folder: string
  #names: Promise<ReadonlySet<string>> | undefined
  #frame: Promise<string> | undefined
  #page: Promise<{ readonly html: string; readonly etag: string }> | undefined

  constructor(folder: string) {
    this.#folder = folder
  }

  /** The page, with a tag that changes when the page or its policy does. */
  async page(policy: string): Promise<{ readonly html: string; readonly etag: string }> {
    const { html, etag } = await (this.#page ??= this.#readPage())
    return { html, etag: `"${hashOf(`${etag} ${policy}`)}"` }
  }

  /** The document in which pages of extensions run, with the policy that holds in it. */
  async frame(): Promise<SentAsset> {
    const html = await (this.#frame ??= readFile(join(this.#folder, FRAME), 'utf8'))
    const [, script = ''] = /<script>([^]*)<\/script>/.exec(html) ?? []
    const policy = framePolicy(createHash('sha256').update(script).digest('base64'))
    return {
      'content-type': 'text/html; charset=utf-8',
      data: Buffer.from(html),
      headers: {
        'content-security-policy': policy,
        'cache-control': 'no-cache',
        etag: `"${hashOf(html + policy)}"`,
        // A name that is looked up ahead of a request would leave the machine.
        'x-dns-prefetch-control': 'off',
      },
    }
  }

  /** A file in the best encoding that the client accepts. */
  async file(name: string, accepted: string): Promise<SentAsset> {
    if (name === FRAME) return this.frame()
    const names = await (this.#names ??= readdir(this.#folder).then(list => new Set(list)))
    const type = TYPES[name.split('.').at(-1)!]
    if (!type || !names.has(name)) return refuse('not-found', `the console has no file ${JSON.stringify(name)}`)
    const found = ENCODINGS.find(([encoding, ending]) => accepts(accepted, encoding) && names.has(name + ending))
    return {
      'content-type': type,
      data: await readFile(join(this.#folder, name + (found?.[1] ?? ''))),
      headers: {
        ...(name === WORKER ? WORKER_HEADERS : { 'cache-control': 'public, max-age=31536000, immutable' }),
        vary: 'Origin, Accept-Encoding',
        ...(found && { 'content-encoding': found[0] }),
      },
    }
  }

  async #readPage() {
    const html = await readFile(join(this.#folder, 'index.html'), 'utf8')
    return { html, etag: hashOf(html) }
  }
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, 22)

/** Whether `accept-encoding` names an encoding, or everything, without refusing it by `q=0` (RFC 9110, 12.5.3). */
const accepts = (header: string, encoding: string): boolean => {
  const weights = new Map(
    header
      .toLowerCase()
      .split(',')
      .map(part => {
        const [name = '', ...parameters] = part.split(';').map(piece => piece.trim())
        return [name, Number(parameters.find(one => one.startsWith('q='))?.slice(2) ?? 1)] as const
      }),
  )
  return (weights.get(encoding) ?? weights.get('*') ?? 0) > 0
}
