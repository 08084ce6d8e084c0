import { useSignal } from '@preact/signals'
import type { ToolContent } from '../../../../agent/contract.js'
import { plainOutput } from '../../run/ansi.js'
import type { LineRow, RunRow, ThinkingRow, ToolRow, UserRow } from '../../run/row-kinds.js'
import { UPLOADED } from '../../data/files/attached.js'
import { countText, momentOf, visibleName, visibleText } from '../../ui/format.js'
import { Copyable, CopyButton } from '../../ui/copy.js'
import { lazyView } from '../../ui/lazy.js'
import { Markdown } from '../../ui/markdown.js'
import { memo } from '../../ui/memo.js'
import { CardView } from './cards.js'
import { SimpleDiff } from './simple-diff.js'
import { TextBlock } from '../../ui/text-block.js'

const GivenPicture = lazyView(async () => (await import('./given-picture.js')).GivenPicture)

/** A longer text is cut until the person expands it. */
const LONG = 8_000

const LongText = ({ text, what }: { text: string; what: string }) => {
  const whole = useSignal(text.length <= LONG)
  const shown = whole.value ? text : text.slice(0, LONG)
  return (
    <>
      <TextBlock text={shown} what={what} copies={() => plainOutput(text)}>
        {visibleText(plainOutput(shown))}
      </TextBlock>
      {!whole.value && (
        <button
          class="button"
          type="button"
          onClick={() => {
            whole.value = true
          }}
        >
          Show {countText(text.length - LONG)} more characters
        </button>
      )}
    </>
  )
}

const Content = ({ content }: { content: ToolContent }) => {
  if (content.type === 'text') return <LongText text={content.text} what="the output" />
  if (content.type === 'image') return <GivenPicture path={content.path} />
  // One of a newer daemon.
  if (content.type !== 'diff') return <p class="line quiet">This page does not know this kind of output.</p>
  return (
    <div class="stack">
      <p>
        <Copyable text={content.path} what="the path">
          {visibleName(content.path)}
        </Copyable>
      </p>
      <SimpleDiff before={content.oldText ?? ''} after={content.newText} />
      {content.truncated && <p class="quiet small">The diff was cut.</p>}
    </div>
  )
}

const STATUS = { pending: 'waits', in_progress: 'runs', completed: '', failed: 'failed' } as const

const Tool = ({ row }: { row: ToolRow }) => {
  const { name, target, status, content, children, subagent } = row
  const open = useSignal(false)
  const word = subagent?.status ?? STATUS[status] ?? status
  const about = subagent?.about ?? target
  return (
    <details
      class={`tool ${status}`}
      onToggle={event => {
        open.value = event.currentTarget.open
      }}
    >
      <summary>
        <span class="tool-name">{visibleName(name)}</span>
        {about && (
          <span class="tool-target mono" dir="auto">
            {visibleName(about)}
          </span>
        )}
        {word && <span class={`tag ${status === 'failed' ? 'bad' : 'busy'}`}>{word}</span>}
        {children.length > 0 && <span class="quiet small">{countText(children.length)} steps</span>}
      </summary>
      {open.value && (
        <div class="tool-body stack">
          {target && <LongText text={target} what={row.category === 'execute' ? 'the command' : 'the target'} />}
          {subagent?.summary && <Markdown text={subagent.summary} />}
          {content.map((one, at) => (
            <Content key={at} content={one} />
          ))}
          {children.map(child => (
            <RowView key={child.key} row={child} />
          ))}
          {!content.length && !children.length && !subagent?.summary && (
            <p class="quiet small">Nothing more is known.</p>
          )}
        </div>
      )}
    </details>
  )
}

const Thinking = ({ row }: { row: ThinkingRow }) => (
  <details class="tool">
    <summary>
      <span class="quiet">Thinking</span>
    </summary>
    <div class="tool-body quiet">
      <Markdown text={row.text} />
    </div>
  </details>
)

const Line = ({ row }: { row: LineRow }) => {
  if (row.details?.length)
    return (
      <details class="tool">
        <summary>
          <span class="quiet">{row.text}</span>
        </summary>
        <div class="tool-body stack">
          {row.details.map(({ title, text }) => (
            <div key={title}>
              <h3>{visibleName(title)}</h3>
              <LongText text={text} what={title} />
            </div>
          ))}
        </div>
      </details>
    )
  const tone = { quiet: 'line quiet', info: 'line', warning: 'notice warn', error: 'notice bad' }[row.level]
  return (
    <p class={tone} dir="auto">
      {visibleText(row.text)}
    </p>
  )
}

const User = ({ row, actions }: { row: UserRow; actions?: RowActions | undefined }) => (
  <div class="said">
    <div class="said-head small quiet">
      <span>{row.by ?? 'You'}</span>
      {row.sentAt !== undefined && <time dateTime={new Date(row.sentAt).toISOString()}>{momentOf(row.sentAt)}</time>}
      <span class="said-actions">
        {actions && row.index !== undefined && (
          <>
            {row.checkpoint && (
              <button class="link" type="button" onClick={() => actions.rewind(row.index!)}>
                Go back here
              </button>
            )}
            <button class="link" type="button" onClick={() => actions.fork(row.index!)}>
              Fork
            </button>
          </>
        )}
        <CopyButton text={row.text} what="the message" />
      </span>
    </div>
    <p class="said-text" dir="auto">
      {visibleText(row.text)}
    </p>
    {row.attachments?.map(path => (
      <AttachedFile key={path} path={path} />
    ))}
  </div>
)

const PICTURE = /\.(?:png|jpe?g|gif|webp|avif)$/i

/** A file of a message: a picture is shown, of others the name. */
const AttachedFile = ({ path }: { path: string }) => {
  const uploaded = path.startsWith(`${UPLOADED}/`)
  if (uploaded && PICTURE.test(path)) return <GivenPicture path={path} shared />
  return (
    <span class="tag" title={path}>
      {visibleName(uploaded ? path.slice(path.lastIndexOf('/') + 1) : path)}
    </span>
  )
}

/** The actions for a person's own message. */
export interface RowActions {
  rewind(index: number): void
  fork(index: number): void
}

/** One row of the transcript. */
export const RowView = memo(({ row, actions }: { row: RunRow; actions?: RowActions | undefined }) => {
  switch (row.type) {
    case 'user':
      return <User row={row} actions={actions} />
    case 'prose':
      return (
        <div class="prose-row">
          {row.placed && <p class="quiet small">Placed by a person</p>}
          <Markdown text={row.text} />
          <CopyButton text={row.text} what="the message" />
        </div>
      )
    case 'thinking':
      return <Thinking row={row} />
    case 'tool':
      return <Tool row={row} />
    case 'card':
      return <CardView row={row} />
    case 'line':
      return <Line row={row} />
  }
})
