import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { BackgroundCommand, BackgroundCount } from '../../../../agent/contract.js'
import { askDaemon, faultSentence } from '../../data/api.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { countText, spanText, visibleName } from '../../ui/format.js'
import { useNow } from '../../ui/now.js'
import { FaultLine } from '../../ui/page.js'
import { useRead } from '../../ui/read.js'
import { TextBlock } from '../../ui/text-block.js'
import { reaches } from '../registry.js'

const POLL_MS = 2_000
const MOST_SHOWN = 64 * 1024

/** The output of a command, read on while it is shown and the command runs. */
const Output = ({ command: { conversationId, id, running } }: { command: BackgroundCommand }) => {
  const looks = useSignal(0)
  const read = useRef({ text: '', to: 0 })
  // Each look reads what came since the last one.
  const { data: text, error } = useRead(`${id} ${running} ${looks.value}`, async () => {
    const { text, to } = read.current
    const part = await askDaemon('GET /agent/processes/{conversationId}/{id}', { conversationId, id, since: to })
    const whole = part.from === to ? text + part.text : part.text
    read.current = { text: whole.slice(-MOST_SHOWN), to: part.to }
    return read.current.text
  })
  useEffect(() => {
    if (!running) return
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') looks.value += 1
    }, POLL_MS)
    return () => clearInterval(timer)
  }, [running])
  const box = useRef<HTMLDivElement>(null)
  const follows = useRef(true)
  useEffect(() => {
    const shown = box.current?.querySelector('pre')
    if (shown && follows.current) shown.scrollTop = shown.scrollHeight
  }, [text])
  if (error !== undefined) return <p class="small quiet">{faultSentence(error)}</p>
  if (text === undefined) return <p class="small quiet">Reading its output …</p>
  if (text === '') return <p class="small quiet">It has written nothing{running ? ' yet' : ''}.</p>
  return (
    <div
      ref={box}
      onScrollCapture={event => {
        const { scrollTop, scrollHeight, clientHeight } = event.target as HTMLElement
        follows.current = scrollHeight - scrollTop - clientHeight < 8
      }}
    >
      <TextBlock text={text} what="the output" label={`Output of ${id}`} />
    </div>
  )
}

const Age = ({ since }: { since: number }) => <>{spanText(useNow() - since)}</>

const Row = ({ command, ended }: { command: BackgroundCommand; ended: () => void }) => {
  const open = useSignal(false)
  const action = useAction()
  const { conversationId, id, running, startedAt } = command
  return (
    <li>
      <div class="row">
        <button
          class="link grow one-line mono small"
          type="button"
          dir="ltr"
          aria-expanded={open.value}
          onClick={() => {
            open.value = !open.value
          }}
        >
          {visibleName(command.command)}
        </button>
        <span class="small quiet">{running ? <Age since={startedAt} /> : visibleName(command.ended ?? 'ended')}</span>
        {running && reaches(person.value?.role, 'collaborator') && (
          <ActionButton
            action={action}
            class="plainly"
            about={visibleName(command.command)}
            work={async () => {
              await askDaemon('DELETE /agent/processes/{conversationId}/{id}', { conversationId, id })
              ended()
            }}
          >
            End
          </ActionButton>
        )}
      </div>
      <FaultLine fault={action.fault} />
      {open.value && <Output command={command} />}
    </li>
  )
}

/** The commands in the background of a conversation: what they write, and a way to end them. */
export const ProcessesPane = ({ id, count: { running, total } }: { id: string; count: BackgroundCount }) => {
  const looks = useSignal(0)
  const { data, error } = useRead(`${id} ${running} ${total} ${looks.value}`, () =>
    askDaemon('GET /agent/processes', { conversationId: id }),
  )
  return (
    <details class="folded processes">
      <summary>
        In the background: {countText(running)} {running === 1 ? 'command runs' : 'commands run'}
      </summary>
      {error !== undefined && <p class="small quiet">{faultSentence(error)}</p>}
      <ul>
        {(data?.processes ?? []).map(command => (
          <Row
            key={command.id}
            command={command}
            ended={() => {
              looks.value += 1
            }}
          />
        ))}
      </ul>
    </details>
  )
}
