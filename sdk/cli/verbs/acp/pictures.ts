import { randomBytes } from 'node:crypto'
import { pathToFileURL } from 'node:url'
import type { ContentBlock } from '@agentclientprotocol/sdk'
import type { Client } from '../../../client.js'
import { editorPath } from './daemons.js'

/** Larger pictures are named, not sent. */
const MOST_BYTES = 5 * 1024 * 1024
const TYPES: { readonly [type: string]: string } = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
}

/** The pictures and files of one conversation. */
export class ConversationFiles {
  readonly #client: Client
  readonly #root: string
  readonly #conversationId: string

  constructor(client: Client, root: string, conversationId: string) {
    this.#client = client
    this.#root = root
    this.#conversationId = conversationId
  }

  /** A picture as content: of the private copy, else of the workspace, else its name. */
  readonly picture = async (path: string): Promise<ContentBlock> => {
    for (const place of [{ agent: this.#conversationId }, {}]) {
      const found = await this.#client.call('GET /workspace/raw', { ...place, path }).catch(() => undefined)
      if (!found) continue
      const type = found['content-type'].split(';')[0]!
      const bytes = found.data as Uint8Array
      if (!Object.hasOwn(TYPES, type) || bytes.length > MOST_BYTES) break
      return { type: 'image', mimeType: type, data: Buffer.from(bytes).toString('base64') }
    }
    return this.link(path)
  }

  /** A file of the workspace as content that names it. */
  link(path: string): ContentBlock {
    return {
      type: 'resource_link',
      name: path.split('/').at(-1) ?? path,
      uri: pathToFileURL(editorPath(this.#root, path)).href,
    }
  }

  /** Stores bytes of the editor where messages find their attachments; returns the path. */
  async attach(name: string, base64: string): Promise<string> {
    const path = `.sandbox/records/artifacts/attachments/${randomBytes(16).toString('hex')}/${name}`
    await this.#client.call('POST /workspace/upload', { path, content: base64 })
    return path
  }

  /** The name that a picture gets. */
  static nameOf(mimeType: string): string {
    return `picture.${TYPES[mimeType] ?? 'bin'}`
  }
}
