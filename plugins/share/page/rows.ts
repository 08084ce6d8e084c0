import { createPatch } from 'diff'
import { basename } from 'node:path'
import { escapedHtml } from '../../../sdk/node/pages/message-page.js'
import type { AnsweredCard, ToolCard, ToolContent, TranscriptMessage } from '../../agent/contract.js'
import type { ShareDetail } from '../contract.js'
import { markdownHtml, plainHtml, seenIn } from './markdown.js'
import type { PictureFiles } from './picture-files.js'
import type { Reduction } from './reduction.js'

const DEEPEST = 8
const MOST_COMPARED = 200_000
const COMPARED_MS = 500

/** What rows are written with. */
export interface RowParts {
  readonly detail: ShareDetail
  readonly reduction: Reduction
  readonly pictures: PictureFiles
}

/** One row of a conversation as HTML; undefined: none of it is shown. */
export const rowHtml = async (row: TranscriptMessage, deps: RowParts): Promise<string | undefined> => {
  const { reduction, detail } = deps
  if (row.role === 'notice') return undefined
  const said = [
    row.text.trim() === '' ? '' : reducedHtml(row.text, reduction),
    ...(row.cards ?? []).map(card => cardHtml(card, reduction)),
  ]
  const more =
    detail === 'everything'
      ? [
          row.thinking ? folded('Thinking', plainHtml(reduction.text(row.thinking))) : '',
          ...(await Promise.all((row.tools ?? []).map(tool => toolHtml(tool, deps, 0)))),
          ...(await Promise.all((row.attachments ?? []).map(path => fileHtml(path, deps)))),
        ]
      : []
  const html = [...said, ...more].join('')
  if (html === '') return undefined
  const time = row.sentAt === undefined ? '' : timeHtml(row.sentAt)
  const kind = row.role === 'user' ? 'person' : 'agent'
  return `<article class="${kind}"><p class="who">${speakerOf(row)}${time}</p>${html}</article>\n`
}

/** A text as it may leave; what only its marks kept apart is looked for again, and shows such a text without them. */
const reducedHtml = (text: string, reduction: Reduction): string => {
  const html = markdownHtml(reduction.text(text))
  const seen = seenIn(html)
  const reduced = reduction.text(seen)
  return reduced === seen ? html : plainHtml(reduced.trim())
}

const speakerOf = ({ role, by = '', placed }: TranscriptMessage): string => {
  if (role === 'assistant') return placed ? 'Agent (written by a person)' : 'Agent'
  return by.startsWith('sandbox:') ? 'Sandbox' : 'Person'
}

const timeHtml = (at: number): string => {
  const iso = new Date(at).toISOString()
  return ` <time datetime="${iso}">${iso.slice(0, 16).replace('T', ' ')} UTC</time>`
}

const folded = (summary: string, html: string): string =>
  `<details><summary dir="auto">${escapedHtml(summary)}</summary>${html}</details>`

const toolHtml = async (tool: ToolCard, deps: RowParts, depth: number): Promise<string> => {
  const { reduction } = deps
  const target = tool.target === undefined ? '' : ` · ${reduction.text(tool.target)}`
  const state = tool.status === 'failed' ? ' (failed)' : ''
  const inner = [
    tool.thinking ? folded('Thinking', plainHtml(reduction.text(tool.thinking))) : '',
    ...(await Promise.all((tool.content ?? []).map(content => contentHtml(content, deps)))),
    ...(depth < DEEPEST ? await Promise.all((tool.children ?? []).map(child => toolHtml(child, deps, depth + 1))) : []),
  ]
  return folded(`${reduction.text(tool.name)}${target}${state}`, inner.join(''))
}

const contentHtml = async (content: ToolContent, deps: RowParts): Promise<string> => {
  const { reduction } = deps
  if (content.type === 'text') return plainHtml(reduction.text(content.text))
  if (content.type === 'image') return fileHtml(content.path, deps)
  const path = reduction.text(content.path)
  const [before, after] = [reduction.text(content.oldText ?? ''), reduction.text(content.newText)]
  const cut = content.truncated ? '<p class="meta">The change is longer.</p>' : ''
  return plainHtml(changeOf(path, before, after)) + cut
}

/** A change as a patch, where both sides can be compared in time. */
const changeOf = (path: string, before: string, after: string): string => {
  const isLong = before.length + after.length > MOST_COMPARED
  const patch = isLong ? undefined : createPatch(path, before, after, '', '', { timeout: COMPARED_MS })
  return patch === undefined ? `${path}\n${after}` : patch.split('\n').slice(2).join('\n')
}

const fileHtml = async (path: string, { pictures, reduction }: RowParts): Promise<string> => {
  const name = escapedHtml(reduction.text(basename(path)))
  const picture = await pictures.of(path)
  return picture
    ? `<p><img src="files/${picture.name}" alt="${name}"></p>`
    : `<p class="meta" dir="auto">File: ${name}</p>`
}

/** Plans and questions are words of the agent, answers those of a person; other cards are not shown. */
const cardHtml = ({ card, reply }: AnsweredCard, reduction: Reduction): string => {
  if (card.kind === 'plan') return reducedHtml(card.text, reduction)
  if (card.kind !== 'question') return ''
  const answers = reply?.kind === 'question' ? (reply.answers ?? {}) : {}
  return card.questions
    .map(({ question }) => {
      const answer = answers[question]
      const words = answer === undefined ? 'No answer.' : [answer].flat().join(', ')
      const [asked, said] = [question, words].map(text => escapedHtml(reduction.text(text)))
      return `<p dir="auto">${asked}<br><strong>${said}</strong></p>`
    })
    .join('')
}
