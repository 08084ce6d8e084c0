import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { LogLevel } from '../../../../../sdk/log-line.js'
import { askDaemon } from '../../data/api.js'
import { LogFeed } from '../../data/log-feed.js'
import { shownLogLines, withLines, type ShownLogLine } from '../../data/log-lines.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { CheckField, ChoiceField, TextField, useSettled } from '../../ui/fields.js'
import { momentOf, visibleName, visibleText } from '../../ui/format.js'
import { VirtualList } from '../../ui/lists/list.js'
import { FaultLine } from '../../ui/page.js'

const LEVELS = [
  ['', 'Every level'],
  ['debug', 'Debug and above'],
  ['info', 'Info and above'],
  ['warn', 'Warnings and errors'],
  ['error', 'Errors'],
] as const satisfies readonly (readonly [LogLevel | '', string])[]
const TONES: { readonly [level in LogLevel]: string } = { debug: '', info: '', warn: 'warn', error: 'bad' }
const WINDOW = 262_144

const LineRow = ({ line }: { line: ShownLogLine }) => (
  <div class="log-line mono">
    {line.at !== undefined && (
      <time class="quiet" dateTime={new Date(line.at).toISOString()}>
        {momentOf(line.at)}
      </time>
    )}
    {line.level && <span class={`tag ${TONES[line.level]}`}>{line.level}</span>}
    <span class="log-text" dir="auto">
      {visibleText(line.text)} {line.more && <span class="quiet">{visibleText(line.more)}</span>}
    </span>
  </div>
)

/** Reads a log: from its beginning, or the lines that fit. */
const useLogWindow = (name: string, level: LogLevel | undefined, find: string, reads: boolean) => {
  const lines = useSignal<readonly ShownLogLine[]>([])
  const next = useSignal<number | undefined>(undefined)
  const read = useSignal(false)
  const action = useAction()
  const load = async (offset: number | undefined) => {
    const page = await askDaemon('GET /logs/file', {
      name,
      bytes: WINDOW,
      ...(level && { level }),
      ...(find && { find }),
      ...(offset !== undefined && { offset }),
    })
    const found = shownLogLines(page.text, page.offset)
    lines.value = offset === undefined ? found : withLines(lines.peek(), found)
    next.value = page.next
    read.value = true
  }
  useEffect(() => {
    lines.value = []
    read.value = false
    if (reads) void action.run(() => load(undefined))
  }, [level, find, reads])
  return { lines: lines.value, next: next.value, read: read.value, action, more: () => load(next.peek()) }
}

const useLogFeed = (name: string, level: LogLevel | undefined, follows: boolean) => {
  const lines = useSignal<readonly ShownLogLine[]>([])
  const fault = useSignal('')
  useEffect(() => {
    if (!follows) return
    lines.value = []
    const feed = new LogFeed(name, level)
    const ends = [
      feed.lines.subscribe(value => {
        lines.value = value
      }),
      feed.fault.subscribe(value => {
        fault.value = value
      }),
    ]
    return () => {
      feed.stop()
      for (const end of ends) end()
    }
  }, [level, follows])
  return { lines: lines.value, fault: fault.value }
}

/** One log: followed as it is written, or searched. */
export const LogPane = ({ name }: { name: string }) => {
  const follow = useSignal(true)
  const words = useSignal('')
  const chosen = useSignal<(typeof LEVELS)[number][0]>('')
  const find = useSettled(words.value)
  const level = chosen.value || undefined
  const follows = follow.value && !find
  const feed = useLogFeed(name, level, follows)
  const found = useLogWindow(name, level, find, !follows)
  const lines = follows ? feed.lines : found.lines
  const fault = follows ? feed.fault : found.action.fault
  return (
    <section class="side-main" aria-label={visibleName(name)}>
      <div class="pane-tools">
        <h2 class="mono grow">{visibleName(name)}</h2>
        <CheckField label="Follow" value={follow} />
        <ChoiceField label="Level" value={chosen} choices={LEVELS} />
        <TextField label="Find" type="search" value={words} placeholder="Words of a line" />
      </div>
      {find && follow.value && (
        <p class="quiet small side-note">
          New lines are not shown while you search. Clear the search to follow the log.
        </p>
      )}
      <FaultLine fault={fault} />
      {lines.length === 0 && !fault && (
        <p class="quiet side-note">
          {follows ? 'Lines appear here as they are written.' : found.read ? 'No line fits.' : 'Reading the log …'}
        </p>
      )}
      {lines.length > 0 && (
        <VirtualList
          label={`Lines of ${visibleName(name)}`}
          items={lines}
          keyOf={line => line.key}
          estimate={() => 28}
          followsEnd={follows}
          render={line => <LineRow line={line} />}
        />
      )}
      {!follows && found.next !== undefined && (
        <div class="more-row">
          <ActionButton action={found.action} work={found.more}>
            {find || level ? 'Search on' : 'Read on'}
          </ActionButton>
        </div>
      )}
    </section>
  )
}
