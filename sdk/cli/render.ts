import type { AttachData, Card, CardReply, Frame, LandConflict, TodoItem, ToolCallFrame, ToolContent } from '../../plugins/agent/contract.js'
import { compare } from './patch.js'
import { oneLine, plain, short, stylesOf, type Styles } from './text.js'

/** The most lines of a tool's text and of a file's change that are shown in the run; the rest is counted. */
const TEXT_LINES = 8
const CHANGE_LINES = 16

/** Draws what happens in a run, one event after another, as text for a terminal or a pipe. It does nothing else. */
export type Render = (event: AttachData) => string

export interface RenderOptions {
  readonly colour?: boolean
  /** The width of a terminal whose last line may be drawn over; absent for a pipe. */
  readonly columns?: number
}

interface Pen {
  readonly styles: Styles
  readonly columns?: number
  /** What the unfinished line holds; a tool's line on a pipe waits for its outcome. */
  open?: 'words' | 'thinking' | ToolCallFrame
  readonly tools: Map<string, ToolCallFrame>
  /** The private copy as last told: it is told again after every pause. */
  copy?: string
}

const DRAW_OVER = '\r\u001b[K'

/** A fresh drawing of one run. */
export const createRender = ({ colour = false, columns }: RenderOptions = {}): Render => {
  const pen: Pen = { styles: stylesOf(colour), tools: new Map(), ...(columns !== undefined && { columns }) }
  return event => {
    if (event.kind === 'frame') return safelyDrawn(pen, event.event)
    if (event.kind === 'attached') return ''
    if (event.kind === 'end') return closed(pen) + (event.next ? `${pen.styles.dim(`next: run ${oneLine(event.next)} starts with a waiting message`)}\n` : '')
    return closed(pen) + unknown(pen, event)
  }
}

const closed = (pen: Pen): string => {
  const { open, columns } = pen
  delete pen.open
  if (!open) return ''
  return typeof open === 'object' && columns === undefined ? `${headOf(pen, open)}\n` : '\n'
}

/** A known kind whose fields a newer daemon changed is shown like an unknown one. */
const safelyDrawn = (pen: Pen, frame: Frame): string => {
  try {
    return drawn(pen, frame)
  } catch {
    return closed(pen) + unknown(pen, frame)
  }
}

const drawn = (pen: Pen, frame: Frame): string => {
  if (frame.kind === 'delta') return flowing(pen, 'words', plain(frame.text))
  if (frame.kind === 'thinking') return flowing(pen, 'thinking', plain(frame.text))
  if (frame.kind === 'text_end') return closed(pen)
  if (frame.kind === 'tool_call') return toolShown(pen, frame)
  if (frame.kind === 'tool_call_update') return toolMoved(pen, frame)
  const lines = linesOf(pen, frame)
  return lines.length ? `${closed(pen)}${lines.join('\n')}\n` : ''
}

const flowing = (pen: Pen, kind: 'words' | 'thinking', text: string): string => {
  const before = pen.open === kind ? '' : closed(pen)
  pen.open = kind
  return before + (kind === 'thinking' ? pen.styles.dim(text) : text)
}

const linesOf = (pen: Pen, frame: Exclude<Frame, { kind: 'delta' | 'thinking' | 'text_end' | 'tool_call' | 'tool_call_update' }>): string[] => {
  const { dim, red, green, yellow } = pen.styles
  switch (frame.kind) {
    case 'session':
    case 'checkpoint':
    case 'commands':
      return []
    case 'worktree':
      if (pen.copy === frame.branch) return []
      pen.copy = frame.branch
      return [
        dim(`in a private copy on ${oneLine(frame.branch)}, from ${oneLine(frame.base).slice(0, 12)}`),
        ...(frame.unenforced ? [yellow('warning: this machine cannot wall the turn into its copy')] : []),
      ]
    case 'preamble':
      return [dim(`told the agent first: ${frame.notes.map(note => short(plain(note.title), 60)).join(', ')}`)]
    case 'init':
      return [dim(['model', oneLine(frame.model), ...(frame.provider ? ['of', oneLine(frame.provider)] : [])].join(' '))]
    case 'switched':
      return [yellow(`goes on with ${frame.model === undefined ? '' : `model ${oneLine(frame.model)} of `}${oneLine(frame.provider)}${frame.kept === 'record' ? ', from the record' : ''}`)]
    case 'resumed':
      return [yellow(`taken up again after ${frame.reason === 'auth' ? 'a new sign-in' : `a ${oneLine(frame.reason)}`} (attempt ${frame.attempt})`)]
    case 'mode':
      return [dim(`permission mode ${oneLine(frame.mode)}`)]
    case 'steer':
      return [`> ${plain(frame.text)}${frame.by ? dim(` (${oneLine(frame.by)})`) : ''}`]
    case 'todos':
      return frame.items.map(item => todo(pen.styles, item))
    case 'usage':
      return [dim(usage(frame))]
    case 'plan':
    case 'question':
    case 'permission':
      return cardLines(frame, pen.styles)
    case 'resolved':
      return [dim(`${frame.reply ? `answered: ${plain(answerWords(frame.reply))}` : 'nobody answered'}${frame.by ? ` (${oneLine(frame.by)})` : ''}`)]
    case 'queue':
      return [dim(`${frame.messages.length} ${frame.messages.length === 1 ? 'message waits' : 'messages wait'}${frame.paused ? ', paused' : ''}`)]
    case 'notice':
      return [frame.level === 'warning' ? yellow(`warning: ${plain(frame.text)}`) : dim(`note: ${plain(frame.text)}`)]
    case 'error':
      return [red(`error: ${plain(frame.message)}`)]
    case 'landed':
      return frame.landed ? [green('landed: the work is in the workspace')]
        : frame.held ? [yellow('not landed: held back')] : [yellow('not landed:'), ...conflictLines(frame.conflicts ?? [])]
    case 'done':
      return [frame.reason === 'completed' ? green('done') : red(`ended: ${oneLine(frame.reason)}`)]
    default:
      return [unknown(pen, frame).trimEnd()]
  }
}

/** Whatever a newer daemon sends is shown as it is. */
const unknown = ({ styles }: Pen, value: unknown): string => {
  const { kind, ...rest } = (value ?? {}) as { kind?: unknown }
  return `${styles.dim(short(plain(`${String(kind)}: ${JSON.stringify(rest)}`), 200))}\n`
}

const isOver = ({ status }: ToolCallFrame): boolean => status === 'completed' || status === 'failed'

const toolShown = (pen: Pen, call: ToolCallFrame): string => {
  const before = closed(pen)
  if (isOver(call)) return before + toolLines(pen, call)
  pen.tools.set(call.id, call)
  pen.open = call
  return before + (pen.columns === undefined ? '' : headOf(pen, call))
}

const toolMoved = (pen: Pen, { id, status, content }: Frame & { kind: 'tool_call_update' }): string => {
  const known = pen.tools.get(id)
  if (!known) return ''
  const call = { ...known, ...(status && { status }), ...(content && { content }) }
  if (!isOver(call)) {
    pen.tools.set(id, call)
    return ''
  }
  pen.tools.delete(id)
  const unfinished = typeof pen.open === 'object' && pen.open.id === id
  if (!unfinished) return closed(pen) + toolLines(pen, call)
  delete pen.open
  return (pen.columns === undefined ? '' : DRAW_OVER) + toolLines(pen, call)
}

const headOf = ({ styles: { green, red, dim }, columns = 200 }: Pen, { status, name, target, parentToolUseId }: ToolCallFrame): string => {
  const mark = status === 'completed' ? green('✓') : status === 'failed' ? red('✗') : dim('▸')
  const words = short(plain(`${name}${target ? ` ${target}` : ''}`), Math.max(20, columns - 5))
  return `${parentToolUseId ? '  ' : ''}${mark} ${words}`
}

/** A list the agent keeps for itself is told by the frame of its kind, not by the tool that wrote it. */
const toolLines = (pen: Pen, call: ToolCallFrame): string => {
  const content = call.category === 'think' && call.status === 'completed' ? [] : (call.content ?? [])
  const lines = content.flatMap(one => contentLines(one, pen.styles)).map(line => `${call.parentToolUseId ? '    ' : '  '}${line}`)
  return [headOf(pen, call), ...lines].map(line => `${line}\n`).join('')
}

const contentLines = (content: ToolContent, styles: Styles): string[] => {
  if (content.type === 'diff') return changeLines(content.path, content.oldText, content.newText, styles, content.truncated)
  if (content.type === 'image') return [styles.dim(`picture ${oneLine(content.path)}`)]
  if (content.type === 'text') return cut(plain(content.text).replace(/\n$/, '').split('\n'), TEXT_LINES).map(styles.dim)
  return [styles.dim(short(plain(JSON.stringify(content)), 200))]
}

const changeLines = (path: string, before: string | undefined, after: string, styles: Styles, truncated?: boolean): string[] => {
  const changed = compare(before ?? '', after).filter(line => line.mark !== ' ')
  const lines = changed.map(({ mark, text }) => (mark === '+' ? styles.green : styles.red)(`${mark} ${plain(text)}`))
  const head = `${oneLine(path)}${before === undefined ? ' (new)' : ''}${truncated ? ' (cut short)' : ''}`
  return [styles.dim(head), ...cut(lines, CHANGE_LINES)]
}

const cut = (lines: string[], most: number): string[] =>
  lines.length > most + 1 ? [...lines.slice(0, most), `… ${lines.length - most} more lines`] : lines

const todo = ({ dim, green, yellow }: Styles, { content, status, activeForm }: TodoItem): string =>
  status === 'completed' ? `${green('[x]')} ${dim(plain(content))}`
    : status === 'in_progress' ? `${yellow('[~]')} ${plain(activeForm ?? content)}` : `[ ] ${plain(content)}`

const usage = ({ inputTokens, outputTokens, costUsd, durationMs }: Frame & { kind: 'usage' }): string =>
  `usage: ${[
    inputTokens !== undefined && `${inputTokens} tokens in`,
    outputTokens !== undefined && `${outputTokens} out`,
    costUsd !== undefined && costUsd > 0 && `$${costUsd.toFixed(4)}`,
    durationMs !== undefined && `${(durationMs / 1000).toFixed(1)} s`,
  ].filter(Boolean).join(', ')}`

/** A card as a person reads it. */
export const cardLines = (card: Card, { bold, dim }: Styles): string[] => {
  if (card.kind === 'plan') return [bold('The agent asks whether to follow this plan:'), ...plain(card.text).split('\n').map(line => `  ${line}`)]
  if (card.kind === 'permission') {
    const what = plain(card.title ?? card.displayName ?? card.toolName)
    return [bold(`The agent asks for permission: ${what}`), ...[card.description, card.path, card.reason].flatMap(line => (line ? [dim(`  ${plain(line)}`)] : []))]
  }
  return card.questions.flatMap(({ question, options, multiSelect }) => [
    bold(`The agent asks: ${plain(question)}${multiSelect ? ' (any number of these)' : ''}`),
    ...options.map(({ label, description }, at) => `  ${at + 1}. ${oneLine(label)}${description ? dim(`  ${plain(description)}`) : ''}`),
  ])
}

/** An answer in a few words. */
export const answerWords = (reply: CardReply): string => {
  if (reply.kind === 'plan') return `${reply.approve ? 'yes' : 'no'}${reply.feedback ? `, ${reply.feedback}` : ''}`
  if (reply.kind === 'permission') return `${reply.decision}${reply.feedback ? `, ${reply.feedback}` : ''}`
  if (reply.cancelled) return 'cancelled'
  return Object.values(reply.answers ?? {}).flat().join(', ') || 'skipped'
}

/** What a landing left out, path by path, with what stands in its way. */
export const conflictLines = (conflicts: readonly LandConflict[]): string[] =>
  conflicts.flatMap(({ repo, paths, clean, mainBranch }) => [
    `${oneLine(repo)}: ${paths.length === 0 && clean === 0 ? 'its main checkout is gone'
      : `${paths.length} of ${paths.length + clean} paths do not fit${mainBranch ? ` on ${oneLine(mainBranch)}` : ''}`}`,
    ...paths.map(({ path, reason }) => `  ${oneLine(path)}: ${WHY[reason] ?? oneLine(String(reason))}`),
  ])

const WHY: { readonly [reason: string]: string } = {
  workspace: 'your uncommitted change is in the way',
  diverged: 'the main line moved on',
  binary: 'git cannot merge it',
}
