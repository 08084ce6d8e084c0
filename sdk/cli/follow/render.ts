import type {
  AttachData,
  Frame,
  SubagentFrame,
  TodoItem,
  ToolCallFrame,
  ToolContent,
} from '../../../plugins/agent/contract.js'
import { answerWords, cardLines, conflictLines } from './card-lines.js'
import { SubagentLines } from './subagent-lines.js'
import { compare } from './patch.js'
import { asTyped } from '../terminal/own-name.js'
import { oneLine, plain, short, stylesOf, type Styles } from '../terminal/text.js'

/** The most lines shown of a tool's text and of a file's change; further lines are counted. */
const TEXT_LINES = 8
const CHANGE_LINES = 16

/** Renders the events of a run, one after the other, as text for a terminal or a pipe. Has no side effects. */
export type Render = (event: AttachData) => string

export interface RenderOptions {
  readonly colour?: boolean
  /** The width of a terminal whose last line may be redrawn; absent for a pipe. */
  readonly columns?: number
}

/** Text or thoughts that may continue, of the turn's agent or of a subagent. */
interface Prose {
  readonly kind: 'words' | 'thinking'
  readonly parent?: string
}

interface Pen {
  readonly styles: Styles
  readonly columns?: number
  /** The content of the unfinished line; on a pipe a tool's line is printed with its outcome. */
  open?: Prose | ToolCallFrame
  readonly subagents: SubagentLines
  readonly tools: Map<string, ToolCallFrame>
  /** The private copy as last printed, because its frame is repeated after every pause. */
  copy?: string
}

/** Frames at the end of a turn: its usage, of which each answer has a part, is printed before them. */
const ENDINGS = new Set<Frame['kind']>(['error', 'landed', 'done'])
const DRAW_OVER = '\r\u001b[K'

/** Creates the renderer of one run. */
export const createRender = ({ colour = false, columns }: RenderOptions = {}): Render => {
  const styles = stylesOf(colour)
  const pen: Pen = {
    styles,
    tools: new Map(),
    subagents: new SubagentLines(styles),
    ...(columns !== undefined && { columns }),
  }
  return event => {
    if (event.kind === 'frame') return safelyDrawn(pen, event.event)
    if (event.kind === 'attached') return ''
    if (event.kind === 'end')
      return (
        closed(pen)
        + (event.next ? `${pen.styles.dim(`next: run ${oneLine(event.next)} starts with a waiting message`)}\n` : '')
      )
    return closed(pen) + unknown(pen, event)
  }
}

const closed = (pen: Pen): string => {
  const { open, columns } = pen
  delete pen.open
  if (!open) return ''
  return open.kind === 'tool_call' && columns === undefined ? `${headOf(pen, open)}\n` : '\n'
}

/** Renders a frame; shows one whose fields a newer daemon changed like an unknown kind. */
const safelyDrawn = (pen: Pen, frame: Frame): string => {
  try {
    return drawn(pen, frame)
  } catch {
    return closed(pen) + unknown(pen, frame)
  }
}

const drawn = (pen: Pen, frame: Frame): string => {
  if (frame.kind === 'delta') return flowing(pen, 'words', frame)
  if (frame.kind === 'thinking') return flowing(pen, 'thinking', frame)
  if (frame.kind === 'text_end') return flows(pen, 'words', frame.parentToolUseId) ? closed(pen) : ''
  if (frame.kind === 'subagent') return subagentShown(pen, frame)
  if (frame.kind === 'tool_call') return toolShown(pen, frame)
  if (frame.kind === 'tool_call_update') return toolMoved(pen, frame)
  const lines = [...(ENDINGS.has(frame.kind) ? usageOf(pen) : []), ...linesOf(pen, frame)]
  return lines.length ? `${closed(pen)}${lines.join('\n')}\n` : ''
}

/** What the turn's own agent used since this was last shown. */
const usageOf = ({ styles, subagents }: Pen): string[] => {
  const used = subagents.usedByTurn()
  return used ? [styles.dim(usage(used))] : []
}

const flows = ({ open }: Pen, kind: Prose['kind'], parent: string | undefined): boolean =>
  open?.kind === kind && open.parent === parent

const flowing = (
  pen: Pen,
  kind: Prose['kind'],
  { text, parentToolUseId: parent }: { readonly text: string; readonly parentToolUseId?: string },
): string => {
  const indent = pen.subagents.indent(parent)
  const before = flows(pen, kind, parent) ? '' : closed(pen) + indent + pen.subagents.speaker(parent)
  pen.open = { kind, ...(parent !== undefined && { parent }) }
  const words = indent ? plain(text).replaceAll('\n', `\n${indent}`) : plain(text)
  return before + (kind === 'thinking' ? pen.styles.dim(words) : words)
}

/** The call that started a subagent is printed above what the subagent does. */
const subagentShown = (pen: Pen, frame: SubagentFrame): string => {
  pen.subagents.begin(frame, pen.tools.get(frame.id)?.parentToolUseId)
  return pen.open?.kind === 'tool_call' ? closed(pen) : ''
}

const linesOf = (
  pen: Pen,
  frame: Exclude<Frame, { kind: 'delta' | 'thinking' | 'text_end' | 'tool_call' | 'tool_call_update' | 'subagent' }>,
): string[] => {
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
        ...(frame.network === 'shared' ? [dim('in the network of the machine')] : []),
      ]
    case 'preamble':
      return [dim(`context for the agent: ${frame.notes.map(note => short(plain(note.title), 60)).join(', ')}`)]
    case 'init':
      return [
        dim(['model', oneLine(frame.model), ...(frame.provider ? ['of', oneLine(frame.provider)] : [])].join(' ')),
      ]
    case 'tier':
      return [dim(tiered(frame))]
    case 'switched':
      return [yellow(switched(frame))]
    case 'resumed':
      return [yellow(`resumed after ${causeOf(frame)} (attempt ${frame.attempt})`)]
    case 'mode':
      return [dim(`permission mode ${oneLine(frame.mode)}`)]
    case 'rate_limit_info':
      return [limit(pen.styles, frame)]
    case 'account_usage':
      return [dim(`limits: ${frame.windows.map(windowOf).join(', ') || 'none'}`)]
    case 'fast_mode':
      return [dim(`fast mode ${oneLine(frame.state)}${frame.reason ? `: ${plain(frame.reason)}` : ''}`)]
    case 'provider_retry':
      return [
        yellow(
          'retrying the provider '
            + `(attempt ${frame.attempt}${frame.maxAttempts === undefined ? '' : ` of ${frame.maxAttempts}`})`
            + (frame.message ? `: ${short(plain(frame.message), 300)}` : ''),
        ),
      ]
    case 'context_usage':
      return [dim(`context: ${frame.tokens} of ${frame.contextWindow} tokens`)]
    case 'compact':
      return [dim(`the context was compacted${compacted(frame)}`)]
    case 'service_event':
      return [
        dim(
          frame.event.event === 'status'
            ? `service: ${plain(frame.event.text)}`
            : `service result: ${short(plain(JSON.stringify(frame.event.data)), 200)}`,
        ),
      ]
    case 'service_receipt':
      return [dim(`service: ${oneLine(frame.outcome)}, ${frame.credits} credits${simulated(frame)}`)]
    case 'capability_outcome':
      return [
        dim(frame.outcome === 'connected' ? `connected${frame.id ? `: ${oneLine(frame.id)}` : ''}` : 'not connected'),
      ]
    case 'payment_receipt':
      return [dim(`payment of $${oneLine(frame.amountUsd)}: ${oneLine(frame.outcome)}${simulated(frame)}`)]
    case 'steer':
      return [`> ${plain(frame.text)}${frame.by ? dim(` (${oneLine(frame.by)})`) : ''}`]
    case 'todos':
      return frame.items.map(item => todo(pen.styles, item))
    case 'subagent_update': {
      const used = pen.subagents.usedAtEnd(frame)
      return [...(used ? [pen.subagents.indent(frame.id) + dim(usage(used))] : []), ...pen.subagents.move(frame)]
    }
    case 'usage':
      pen.subagents.use(frame.subagent, frame)
      return []
    case 'plan':
    case 'question':
    case 'permission':
    case 'service_offer':
    case 'capability_offer':
    case 'payment_offer':
      return cardLines(frame, pen.styles)
    case 'resolved':
      return [dim(resolved(frame))]
    case 'queue':
      return [dim(waiting(frame))]
    case 'notice':
      return [
        frame.level === 'warning'
          ? yellow(`warning: ${plain(asTyped(frame.text))}`)
          : dim(`note: ${plain(asTyped(frame.text))}`),
      ]
    case 'error':
      return [
        red(`error: ${plain(frame.message)}`),
        ...(frame.outage
          ? [yellow(`the turn resumes by itself (attempt ${frame.outage.attempt} of ${frame.outage.maxAttempts})`)]
          : []),
      ]
    case 'landed':
      return frame.landed
        ? [green('landed: the work is in the workspace, as uncommitted changes')]
        : frame.held
          ? [yellow('not landed: held back')]
          : [yellow('not landed:'), ...conflictLines(frame.conflicts ?? [])]
    case 'browser':
    case 'terminal':
      return [dim(`uses the ${frame.kind} ${plain(frame.session)}`)]
    case 'need':
    case 'approval':
      return [dim(`${frame.kind} ${plain(frame.status)}: ${plain(frame.title)} (${plain(frame.id)})`)]
    case 'rule': {
      const bad = frame.outcome === 'failed' || frame.outcome === 'hold'
      const line = `rule ${oneLine(frame.id)} (${plain(frame.label)}): ${oneLine(frame.outcome)}`
      return [bad ? yellow(line) : dim(line)]
    }
    case 'done':
      return [frame.reason === 'completed' ? green('done') : red(`ended: ${oneLine(frame.reason)}`)]
    default:
      return [unknown(pen, frame).trimEnd()]
  }
}

/** Shows an event of an unknown kind, from a newer daemon, as JSON. */
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

const toolMoved = (pen: Pen, { kind: _kind, ...moved }: Frame & { kind: 'tool_call_update' }): string => {
  const { id } = moved
  const known = pen.tools.get(id)
  if (!known) return ''
  const call: ToolCallFrame = { ...known, ...moved }
  const unfinished = pen.open?.kind === 'tool_call' && pen.open.id === id
  if (!isOver(call)) {
    pen.tools.set(id, call)
    if (unfinished) pen.open = call
    // The line was printed with the name announced first.
    const renamed = unfinished && pen.columns !== undefined && (moved.target || moved.name)
    return renamed ? DRAW_OVER + headOf(pen, call) : ''
  }
  pen.tools.delete(id)
  if (!unfinished) return closed(pen) + toolLines(pen, call)
  delete pen.open
  return (pen.columns === undefined ? '' : DRAW_OVER) + toolLines(pen, call)
}

const headOf = (
  { styles: { green, red, dim }, subagents, columns = 200 }: Pen,
  { status, name, target, parentToolUseId }: ToolCallFrame,
): string => {
  const mark = status === 'completed' ? green('✓') : status === 'failed' ? red('✗') : dim('▸')
  const indent = subagents.indent(parentToolUseId)
  const words = short(plain(`${name}${target ? ` ${target}` : ''}`), Math.max(20, columns - 5 - indent.length))
  return `${indent}${mark} ${words}`
}

/** The content of a to-do tool is left out, since the frame `todos` shows the list. */
const toolLines = (pen: Pen, call: ToolCallFrame): string => {
  const content = call.category === 'think' && call.status === 'completed' ? [] : (call.content ?? [])
  const lines = content
    .flatMap(one => contentLines(one, pen.styles))
    .map(line => `${pen.subagents.indent(call.parentToolUseId)}  ${line}`)
  return [headOf(pen, call), ...lines].map(line => `${line}\n`).join('')
}

const contentLines = (content: ToolContent, styles: Styles): string[] => {
  if (content.type === 'diff')
    return changeLines(content.path, content.oldText, content.newText, styles, content.truncated)
  if (content.type === 'image') return [styles.dim(`picture ${oneLine(content.path)}`)]
  if (content.type === 'text')
    return cut(plain(content.text).replace(/\n$/, '').split('\n'), TEXT_LINES).map(styles.dim)
  return [styles.dim(short(plain(JSON.stringify(content)), 200))]
}

const changeLines = (
  path: string,
  before: string | undefined,
  after: string,
  styles: Styles,
  truncated?: boolean,
): string[] => {
  const changed = compare(before ?? '', after).filter(line => line.mark !== ' ')
  const lines = changed.map(({ mark, text }) => (mark === '+' ? styles.green : styles.red)(`${mark} ${plain(text)}`))
  const head = `${oneLine(path)}${before === undefined ? ' (new)' : ''}${truncated ? ' (cut short)' : ''}`
  return [styles.dim(head), ...cut(lines, CHANGE_LINES)]
}

const cut = (lines: string[], most: number): string[] =>
  lines.length > most + 1 ? [...lines.slice(0, most), `… ${lines.length - most} more lines`] : lines

const todo = ({ dim, green, yellow }: Styles, { content, status, activeForm }: TodoItem): string =>
  status === 'completed'
    ? `${green('[x]')} ${dim(plain(content))}`
    : status === 'in_progress'
      ? `${yellow('[~]')} ${plain(activeForm ?? content)}`
      : `[ ] ${plain(content)}`

const usage = ({ inputTokens, outputTokens, costUsd, durationMs }: Frame & { kind: 'usage' }): string =>
  `usage: ${[
    inputTokens !== undefined && `${inputTokens} tokens in`,
    outputTokens !== undefined && `${outputTokens} out`,
    costUsd !== undefined && costUsd > 0 && `$${costUsd.toFixed(4)}`,
    durationMs !== undefined && `${(durationMs / 1000).toFixed(1)} s`,
  ]
    .filter(Boolean)
    .join(', ')}`

const limit = (
  { dim, yellow, red }: Styles,
  { status, utilization, resetsAt }: Frame & { kind: 'rate_limit_info' },
): string => {
  const used = utilization === undefined ? '' : `, ${utilization} % used`
  const renews = resetsAt === undefined ? '' : `, renews ${new Date(resetsAt).toISOString()}`
  const colour = status === 'rejected' ? red : status === 'allowed_warning' ? yellow : dim
  const state = status === 'rejected' ? 'used up' : status === 'allowed_warning' ? 'nearly used up' : 'ok'
  return colour(`limit: ${state}${used}${renews}`)
}

const tiered = ({ tier, model, routed, score }: Frame & { kind: 'tier' }): string => {
  const judged = `judged ${tier === 'fast' ? 'easy' : 'not easy'} (difficulty ${score.toFixed(2)})`
  return tier === 'standard' ? judged : `${judged}: ${routed ? 'runs' : 'could run'} on ${oneLine(model)}`
}

const switched = ({ model, provider, kept }: Frame & { kind: 'switched' }): string => {
  const chosen = `${model === undefined ? '' : `model ${oneLine(model)} of `}${oneLine(provider)}`
  return `continues with ${chosen}${kept === 'record' ? ', from the record' : ''}`
}

const causeOf = ({ reason }: Frame & { kind: 'resumed' }): string =>
  reason === 'auth' ? 'a new sign-in' : reason === 'outage' ? 'an outage' : `a ${oneLine(reason)}`

const windowOf = ({ kind, label, utilization }: (Frame & { kind: 'account_usage' })['windows'][number]): string =>
  `${oneLine(label ?? kind)} ${utilization} %`

const resolved = ({ reply, by }: Frame & { kind: 'resolved' }): string => {
  const outcome = reply ? `answered: ${plain(answerWords(reply))}` : 'not answered'
  return by ? `${outcome} (${oneLine(by)})` : outcome
}

const waiting = ({ messages, paused }: Frame & { kind: 'queue' }): string =>
  `${messages.length} ${messages.length === 1 ? 'message waits' : 'messages wait'}${paused ? ', paused' : ''}`

const compacted = ({ preTokens, postTokens, detail }: Frame & { kind: 'compact' }): string => {
  const lost = detail === undefined ? '' : ` (${plain(detail)})`
  if (preTokens === undefined) return (postTokens === undefined ? '' : `: ${postTokens} tokens left`) + lost
  return `: ${preTokens} tokens before${postTokens === undefined ? '' : `, ${postTokens} after`}${lost}`
}

const simulated = (receipt: { simulated?: boolean }): string => (receipt.simulated ? ' (simulated)' : '')
