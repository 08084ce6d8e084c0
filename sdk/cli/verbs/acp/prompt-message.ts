import { randomBytes } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { basename, relative, sep } from 'node:path'
import type { ContentBlock } from '@agentclientprotocol/sdk'
import { Refusal } from '../../../refusal.js'
import { oneLine } from '../../terminal/text.js'
import { ConversationFiles } from './pictures.js'

/** What a person sent, as a message of the daemon. */
export interface EditorMessage {
  readonly prompt: string
  readonly mentions: string[]
  readonly attachments: string[]
}

/** The most files of one message. */
const MOST = 20
/** A name that is taken for a file's. */
const NAME = /[^\p{L}\p{N}._ -]/gu

/** A path of the workspace for an address of the editor, which may come through links; undefined: it is elsewhere. */
const pathOf = async (uri: string, root: string): Promise<string | undefined> => {
  if (!uri.startsWith('file:')) return undefined
  try {
    const path = fileURLToPath(uri.replace(/[?#].*$/s, ''))
    return below(root, path) ?? below(root, await realpath(path))
  } catch {
    return undefined
  }
}

const below = (root: string, path: string): string | undefined => {
  const inside = relative(root, path)
  return inside === '' || inside === '..' || inside.startsWith(`..${sep}`) ? undefined : inside.split(sep).join('/')
}

/** A file in a message; its text cannot end its own element and go on as the words of the person. */
const contextOf = (ref: string, text: string): string => {
  let name = 'context'
  while (text.includes(`</${name}`)) name = `context-${randomBytes(4).toString('hex')}`
  return `<${name} ref="${oneLine(ref).replaceAll('"', '&quot;')}">\n${text}\n</${name}>`
}

/** Lines of an address such as `file:///a.ts#L3:9`. */
const linesOf = (uri: string): string => {
  const [, first, last] = /#L(\d+)(?:[:-]L?(\d+))?$/.exec(uri) ?? []
  return first === undefined ? '' : `:${first}${last === undefined ? '' : `-${last}`}`
}

/** Converts what the editor sent: text, links to files, their contents and pictures. */
export const editorMessage = async (
  blocks: readonly ContentBlock[],
  root: string,
  files: ConversationFiles,
): Promise<EditorMessage> => {
  const parts: string[] = []
  const after: string[] = []
  const mentions = new Set<string>()
  const attachments: string[] = []
  const attach = async (name: string, data: string) => {
    if (attachments.length === MOST)
      throw new Refusal('invalid', `prompt: expected at most ${MOST} pictures and files, found more`)
    attachments.push(await files.attach(name, data))
  }
  const mention = async (uri: string, name: string): Promise<string> => {
    const path = await pathOf(uri, root)
    if (path === undefined) return uri.startsWith('file:') ? name : uri
    if (mentions.size < MOST) mentions.add(path)
    return `@${path}${linesOf(uri)}`
  }
  for (const block of blocks) {
    if (block.type === 'text') parts.push(block.text)
    else if (block.type === 'resource_link') parts.push(await mention(block.uri, block.name))
    else if (block.type === 'image') await attach(ConversationFiles.nameOf(block.mimeType), block.data)
    else if (block.type === 'resource') {
      const { resource } = block
      const name = basename(resource.uri.replace(/[?#].*$/s, '')).replace(NAME, '') || 'file'
      const said = await mention(resource.uri, name)
      parts.push(said)
      if ('text' in resource) after.push(contextOf(said, resource.text))
      else await attach(name, resource.blob)
    } else throw new Refusal('invalid', `prompt: expected text, links, files or pictures, found ${oneLine(block.type)}`)
  }
  const prompt = [parts.join(''), ...after].filter(Boolean).join('\n\n')
  if (!prompt.trim() && attachments.length === 0) throw new Refusal('invalid', 'prompt: expected a text, found nothing')
  return { prompt, mentions: [...mentions], attachments }
}
