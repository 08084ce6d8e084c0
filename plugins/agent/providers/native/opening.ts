import type { TurnRequest } from '../adapter.js'
import { RunRecord, type Row } from '../../turn/run-record.js'
import { GO_ON, PLANNING } from './instructions.js'
import { MOST_PICTURE } from './prompt.js'
import { NO_TOKENS, type NewEntry, type SentPicture } from './session.js'

const PICTURES = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif'])

/** The message of a turn, with its attachments. */
export const openingWords = (request: TurnRequest): NewEntry => {
  const { prompt, attachments, permissionMode, run } = request
  const pictures: readonly SentPicture[] = attachments
    .filter(({ mime, bytes }) => PICTURES.has(mime) && bytes <= MOST_PICTURE)
    .map(({ path, absolute, mime }) => ({ path, absolute, mime }))
  const files = attachments.map(({ path, mime, bytes }) => `Attached: ${path} (${mime}, ${bytes} bytes)`).join('\n')
  const text = [prompt, files, permissionMode === 'plan' ? PLANNING : ''].filter(part => part.trim()).join('\n\n')
  return { kind: 'words', run, text, ...(pictures.length > 0 && { pictures }) }
}

/** The entries of a conversation without a session, made from its record. */
export const historyEntries = ({ history = [], run }: TurnRequest): readonly NewEntry[] =>
  history.flatMap(row => rowEntries(row, run))

/** The entries of what this turn did with other adapters before. */
export const doneElsewhere = ({ since = [], run, words }: TurnRequest): readonly NewEntry[] => {
  const record = new RunRecord({ run, text: words, sentAt: 0, by: '', messageId: '' })
  for (const frame of since) record.add(frame)
  const done = record.rows.slice(1).filter(({ role }) => role !== 'notice')
  const entries = done.flatMap(row => rowEntries(row, run))
  return done.some(({ role }) => role === 'assistant') ? [...entries, { kind: 'words', run, text: GO_ON }] : entries
}

const rowEntries = ({ role, text, tools, messageId }: Omit<Row, 'run'>, run: string): readonly NewEntry[] => {
  if (role === 'user') return [{ kind: 'words', run, text, ...(messageId && { messageId }) }]
  const done = tools?.map(({ name, target, status }) => `[${name}${target ? ` ${target}` : ''}: ${status}]`) ?? []
  const said = [text, ...done].filter(part => part.trim()).join('\n')
  if (!said) return []
  if (role === 'notice') return [{ kind: 'words', run, text: `[the sandbox noted: ${said}]` }]
  return [{ kind: 'answer', run, parts: [{ kind: 'text', text: said }], usage: NO_TOKENS, by: '' }]
}
