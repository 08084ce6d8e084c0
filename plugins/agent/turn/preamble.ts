import type { EditorContext } from '../contract.js'
import type { TurnNote } from './frames/frames.js'

/** The facts for the notes of a turn. */
export interface NoteFacts {
  /** The repositories of a private copy that does not hold all of the workspace. */
  readonly repositories?: readonly string[]
  readonly sync?: { readonly commits: number; readonly blocked: readonly string[] }
  readonly mentions: readonly string[]
  readonly attachments: readonly string[]
  readonly editorContext?: EditorContext
}

/** The sandbox's notes to a model before a person's message. */
export const notesOf = ({ repositories, sync, mentions, attachments, editorContext }: NoteFacts): TurnNote[] => {
  const notes: TurnNote[] = []
  if (repositories) {
    const text =
      `This is a private copy of ${repositories.join(', ')}. The other files of the workspace can be `
      + 'read here, not written.'
    notes.push({ title: 'Private copy', text })
  }
  if (sync?.commits)
    notes.push({
      title: 'Main line',
      text: `${sync.commits} new commit${sync.commits === 1 ? '' : 's'} of the main line came into this copy.`,
    })
  if (sync?.blocked.length) {
    const text =
      `The main line moved on, and this branch does not fit onto it in: ${sync.blocked.join(', ')}. `
      + 'The copy was left as it was.'
    notes.push({ title: 'Main line blocked', text })
  }
  if (attachments.length) notes.push({ title: 'Attached files', text: attachments.join('\n') })
  if (mentions.length) notes.push({ title: 'Files mentioned', text: mentions.join('\n') })
  if (editorContext) notes.push({ title: 'Open in the editor', text: editorNote(editorContext) })
  return notes
}

const editorNote = ({ file, startLine, endLine, selection }: EditorContext): string => {
  const lines =
    startLine === undefined
      ? ''
      : endLine === undefined || endLine === startLine
        ? `, line ${startLine}`
        : `, lines ${startLine} to ${endLine}`
  return `${file}${lines}${selection ? `\nSelected:\n${selection}` : ''}`
}

/** The notes as text, before the message. */
export const preambleOf = (notes: readonly TurnNote[]): string =>
  notes.map(({ title, text }) => `[${title}]\n${text}\n\n`).join('')
