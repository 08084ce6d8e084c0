import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { Refusal } from '../../../../../sdk/refusal.js'
import { askDaemon, askUntilAnswered } from '../../data/api.js'
import { draftOf, keepDraft } from '../../data/drafts.js'
import { UnansweredMessage } from '../../data/unanswered.js'
import type { RunStanding } from '../../run/notes.js'
import { useAction } from '../../ui/action.js'
import { FaultLine } from '../../ui/page.js'

const LOW = 44
const HIGH = 240
/** A finger types Enter for a new line. */
const hasFinePointer = (): boolean => matchMedia('(pointer: fine)').matches

interface ComposerProps {
  readonly id: string
  /** A turn is running: messages are steered into it, or queued. */
  readonly live: boolean
  readonly commands: RunStanding['commands']
}

/** The field for messages to the agent. Keeps unsent text. */
export const Composer = ({ id, live, commands }: ComposerProps) => {
  const text = useSignal(draftOf(id))
  const sending = useSignal('')
  const action = useAction()
  const box = useRef<HTMLTextAreaElement>(null)
  const unanswered = useRef(new UnansweredMessage())
  const write = (words: string) => {
    text.value = words
    keepDraft(id, words)
  }
  useEffect(() => {
    const area = box.current
    if (!area) return
    area.style.blockSize = `${LOW}px`
    area.style.blockSize = `${Math.min(HIGH, Math.max(LOW, area.scrollHeight + 2))}px`
  }, [text.value])
  const send = async () => {
    const prompt = text.value.trim()
    if (!prompt || action.busy) return
    const messageId = unanswered.current.idFor(prompt)
    sending.value = prompt
    write('')
    const sent = await action.run(() => askUntilAnswered('POST /agent', { conversationId: id, prompt, messageId }))
    sending.value = ''
    if (sent) unanswered.current.settle()
    else write(text.value ? `${prompt}\n${text.value}` : prompt)
  }
  const steer = async () => {
    const words = text.value.trim()
    if (!words) return
    const sent = await action.run(() =>
      askDaemon('POST /agent/steer', { conversationId: id, text: words }).catch(error => {
        throw error instanceof Refusal && error.reason === 'conflict'
          ? new Error(`${error.message}; "Send" queues the words instead`)
          : error
      }),
    )
    if (sent) write('')
  }
  const matching = /^\/\w*$/.test(text.value)
    ? commands.filter(({ name }) => name.startsWith(text.value.slice(1)) && `/${name}` !== text.value).slice(0, 6)
    : []
  return (
    <form
      class="composer"
      onSubmit={event => {
        event.preventDefault()
        void send()
      }}
    >
      {sending.value && (
        <p class="quiet small" role="status">
          Sending: {sending.value.slice(0, 120)}
        </p>
      )}
      {matching.length > 0 && (
        <ul class="completions" aria-label="Commands">
          {matching.map(({ name, description }) => (
            <li key={name}>
              <button
                class="button plainly"
                type="button"
                onClick={() => {
                  write(`/${name} `)
                  box.current?.focus()
                }}
              >
                <code>/{name}</code> <span class="quiet small">{description}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      <div class="composer-row">
        <textarea
          ref={box}
          class="input"
          rows={1}
          dir="auto"
          aria-label="Message to the agent"
          placeholder={live ? 'Say something to the running turn' : 'What next?'}
          data-key="composer"
          value={text.value}
          onInput={event => write(event.currentTarget.value)}
          onKeyDown={event => {
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing || !hasFinePointer()) return
            event.preventDefault()
            void send()
          }}
        />
        {live && (
          <button
            class="button"
            type="button"
            disabled={!text.value.trim() || action.busy}
            onClick={() => void steer()}
          >
            Steer
          </button>
        )}
        <button class="button primary" disabled={!text.value.trim() || action.busy}>
          Send
        </button>
      </div>
      <FaultLine fault={action.fault} />
    </form>
  )
}
