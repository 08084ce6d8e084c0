import type { SentPicture, TurnRequest } from '../adapter.js'
import { notesOf, preambleOf } from '../../turn/preamble.js'
import { RunRecord, type Row } from '../../turn/run-record.js'
import { commandCalled } from '../../instructions/workspace-commands.js'
import { GO_ON, PLANNING } from './instructions.js'
import { MOST_PICTURE } from './prompt.js'
import { NO_TOKENS, type NewEntry } from './session.js'

const PICTURES = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif'])

/** The message of a turn, with its attachments; a shortcut of the code is replaced by its text. */
export const openingWords = (request: TurnRequest): NewEntry => {
  const { attachments, permissionMode, run, commands = [], mentions, editorContext } = request
  const pictures: readonly SentPicture[] = attachments
    .filter(({ mime, bytes }) => PICTURES.has(mime) && bytes <= MOST_PICTURE)
    .map(({ path, absolute, mime }) => ({ path, absolute, mime }))
  const files = attachments.map(({ path, mime, bytes }) => `Attached: ${path} (${mime}, ${bytes} bytes)`).join('\n')
  const { notes, words } = wordsApart(request)
  const asked = commandCalled(words, commands) ?? words
  const prompt = notes + asked
  const text = [prompt, files, permissionMode === 'plan' ? PLANNING : ''].filter(part => part.trim()).join('\n\n')
  // Of the notes before the words, a person said those about files alone; that plan mode is on does not stay true.
  const facts = { mentions, attachments: [], ...(editorContext && { editorContext }) }
  const about = notes === '' ? '' : preambleOf(notesOf(facts))
  const said = [about + asked, files].filter(part => part.trim()).join('\n\n')
  return {
    ...{ kind: 'words', run, text },
    ...(said !== text && { said }),
    ...(pictures.length > 0 && { pictures }),
  }
}

/** The notes of the sandbox, and the words that they stand before. */
const wordsApart = ({ prompt, words }: TurnRequest): { readonly notes: string; readonly words: string } =>
  words.trim() !== '' && prompt.endsWith(words)
    ? { notes: prompt.slice(0, -words.length), words }
    : { notes: '', words: prompt }

const COMPACT = /^\s*\/compact(?:\s+([\s\S]*))?$/

/** What a person who asked to make the conversation shorter wants kept above all; undefined: nobody asked. */
export const askedToCompact = ({ words, round }: Pick<TurnRequest, 'words' | 'round'>): string | undefined => {
  const asked = round === undefined ? COMPACT.exec(words) : undefined
  return asked ? (asked[1]?.trim() ?? '') : undefined
}

/** The entries of a conversation without a session, made from its record. */
export const historyEntries = ({ history = [] }: Pick<TurnRequest, 'history'>): readonly NewEntry[] =>
  history.flatMap(row => rowEntries(row, row.run ?? 'before'))

/** The entries of what this turn did with other adapters before. */
export const doneElsewhere = ({ since = [], run, words }: TurnRequest): readonly NewEntry[] => {
  const record = new RunRecord({ run, text: words, sentAt: 0, by: '', messageId: '' })
  for (const frame of since) record.add(frame)
  const done = record.rows.slice(1).filter(({ role }) => role !== 'notice')
  const entries = done.flatMap(row => rowEntries(row, run))
  return done.some(({ role }) => role === 'assistant')
    ? [...entries, { kind: 'words', run, text: GO_ON, by: 'sandbox' }]
    : entries
}

const rowEntries = ({ role, text, tools, messageId }: Omit<Row, 'run'>, run: string): readonly NewEntry[] => {
  if (role === 'user') return [{ kind: 'words', run, text, ...(messageId && { messageId }) }]
  const done = tools?.map(({ name, target, status }) => `[${name}${target ? ` ${target}` : ''}: ${status}]`) ?? []
  const said = [text, ...done].filter(part => part.trim()).join('\n')
  if (!said) return []
  if (role === 'notice') return [{ kind: 'words', run, text: `[the sandbox noted: ${said}]`, by: 'sandbox' }]
  return [{ kind: 'answer', run, parts: [{ kind: 'text', text: said }], usage: NO_TOKENS, by: '' }]
}
