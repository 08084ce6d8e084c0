import type { ContentBlock } from '@agentclientprotocol/sdk'
import type { TurnRequest } from '../adapter.js'
import { attachedBytes } from '../attached-bytes.js'
import { RunRecord, type Row } from '../../turn/run-record.js'
import type { TreePaths } from './tree-paths.js'

const MOST_IMAGE = 5 * 1024 * 1024
const MOST_HISTORY = 120_000

/** Text for the model that is not a person's. */
const note = (text: string): ContentBlock => ({ type: 'text', text, annotations: { audience: ['assistant'] } })

const ROLES: { readonly [role in Row['role']]: string } = { user: 'Person', assistant: 'You', notice: 'Sandbox' }

/** The earlier messages, the newest in full up to a limit. */
const historyOf = (rows: readonly Row[]): string => {
  const said: string[] = []
  let left = MOST_HISTORY
  for (const { role, text, tools } of rows.toReversed()) {
    const done =
      tools?.map(({ name, target, status }) => `[${name}${target ? ` ${target}` : ''}: ${status}]`).join('\n') ?? ''
    const row = `${ROLES[role]}: ${[text, done].filter(Boolean).join('\n')}`
    if (row.length > left) break
    left -= row.length
    said.unshift(row)
  }
  return said.length > 0
    ? `What was said and done in this conversation before, oldest first:\n\n${said.join('\n\n')}`
    : ''
}

/** What this turn said and did before an interruption or a move. */
const soFar = ({ run, words, since = [] }: TurnRequest): readonly Row[] => {
  const record = new RunRecord({ run, text: words, sentAt: 0, by: '', messageId: '' })
  for (const frame of since) record.add(frame)
  return since.length > 0 ? record.rows : []
}

type Attachment = TurnRequest['attachments'][number]

const attached = async (
  { path, absolute, mime, bytes }: Attachment,
  images: boolean,
  paths: TreePaths,
): Promise<ContentBlock> => {
  const uri = paths.address(path)
  if (images && mime.startsWith('image/') && bytes <= MOST_IMAGE) {
    const data = await attachedBytes(absolute, MOST_IMAGE)
    if (data) return { type: 'image', data: data.toString('base64'), mimeType: mime, uri }
  }
  return { type: 'resource_link', name: path, uri, mimeType: mime, size: bytes }
}

const WORKING = 'Work in the current folder. It is a private place: you may change what the task needs.'
const PLANNING =
  'Make a plan only: look at what you need, change nothing and run nothing that changes anything. Answer with the '
  + 'plan. It is shown to a person; when they approve it you will be told to carry it out.'
const RESUMED =
  'You were interrupted while you worked on this. What you did so far is in the files: look at them and go on '
  + 'from there. This is what was asked:'

/** The prompt at the beginning of a turn: notes, the message, and attachments. */
export const opening = async (
  request: TurnRequest,
  knows: { readonly session: boolean; readonly images: boolean },
  paths: TreePaths,
): Promise<ContentBlock[]> => {
  const { prompt, words, history = [], attachments, resume, permissionMode, instructions = '' } = request
  const preamble = prompt.slice(0, prompt.length - words.length)
  const before = knows.session ? '' : historyOf([...history, ...(resume ? soFar(request) : [])])
  // The persona may have changed since the previous turn of the same session.
  const notes = [instructions, knows.session || instructions ? '' : WORKING, before, preamble, resume ? RESUMED : '']
    .map(text => text.trim())
    .filter(Boolean)
  return [
    ...notes.map(note),
    ...(resume ? [note(words)] : words ? [{ type: 'text' as const, text: words }] : []),
    ...(await Promise.all(attachments.map(each => attached(each, knows.images, paths)))),
    ...(permissionMode === 'plan' ? [note(PLANNING)] : []),
  ]
}

/** The prompt after a plan was approved. */
export const approval = (): ContentBlock[] => [note('The plan was approved. Carry it out now.')]

/** The prompt with a plan, for a program whose session does not have it. */
export const planned = (text: string): ContentBlock[] => [note(`This is the plan that was made for it:\n\n${text}`)]
