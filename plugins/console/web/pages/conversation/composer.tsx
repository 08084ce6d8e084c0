import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { AgentCard } from '../../../../agents/contract.js'
import { Refusal } from '../../../../../sdk/refusal.js'
import { askDaemon, askUntilAnswered } from '../../data/api.js'
import { draftOf, keepDraft } from '../../data/drafts.js'
import { UnansweredMessage } from '../../data/unanswered.js'
import type { RunStanding } from '../../run/notes.js'
import { useAction } from '../../ui/action.js'
import { lazyView } from '../../ui/lazy.js'
import { FaultLine } from '../../ui/page.js'
import { AttachButton, MessageFileList, useMessageFiles } from './message-files.js'
import { chosenCount, clearChoice, turnOptionsOf, useTurnChoice } from './turn-choice.js'

const MessageOptions = lazyView(async () => (await import('./message-options.js')).MessageOptions)

const LOW = 44
const HIGH = 240
/** A finger types Enter for a new line. */
const hasFinePointer = (): boolean => matchMedia('(pointer: fine)').matches

interface ComposerProps {
  readonly id: string
  readonly agent: AgentCard | undefined
  /** A turn is running: messages are steered into it, or queued. */
  readonly live: boolean
  readonly commands: RunStanding['commands']
}

/** The field for messages to the agent, their files and options. Keeps unsent text. */
export const Composer = ({ id, agent, live, commands }: ComposerProps) => {
  const text = useSignal(draftOf(id))
  const sending = useSignal('')
  const action = useAction()
  const box = useRef<HTMLTextAreaElement>(null)
  const unanswered = useRef(new UnansweredMessage())
  const attached = useMessageFiles(id)
  const choice = useTurnChoice()
  const choosing = useSignal(false)
  const list = attached.files.list.value
  const ready = !action.busy && list.every(({ state }) => state === 'there') && (text.value.trim() || list.length > 0)
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
    if (!ready) return
    const prompt = text.value.trim()
    const files = attached.files.take()
    const paths = files.map(({ path }) => path)
    const options = { ...(paths.length && { attachments: paths }), ...turnOptionsOf(choice) }
    const messageId = unanswered.current.idFor(JSON.stringify([prompt, options]))
    sending.value = prompt || files.map(({ name }) => name).join(', ')
    write('')
    const sent = await action.run(() =>
      askUntilAnswered('POST /agent', { conversationId: id, prompt, messageId, ...options }),
    )
    sending.value = ''
    if (sent) {
      unanswered.current.settle()
      clearChoice(choice)
      return
    }
    attached.files.putBack(files)
    write(text.value ? `${prompt}\n${text.value}` : prompt)
  }
  const steer = async () => {
    if (!ready) return
    const words = text.value.trim()
    const attachments = list.map(({ path }) => path)
    const sent = await action.run(() =>
      askDaemon('POST /agent/steer', {
        ...{ conversationId: id, text: words },
        ...(attachments.length && { attachments }),
      }).catch(error => {
        throw error instanceof Refusal && error.reason === 'conflict'
          ? new Error(`${error.message}; "Send" queues the words instead`)
          : error
      }),
    )
    if (!sent) return
    write('')
    attached.files.take()
  }
  const matching = /^\/\w*$/.test(text.value)
    ? commands.filter(({ name }) => name.startsWith(text.value.slice(1)) && `/${name}` !== text.value).slice(0, 6)
    : []
  return (
    <form
      class="composer"
      onDragOver={event => attached.possible && event.preventDefault()}
      onDrop={event => attached.take(event, event.dataTransfer)}
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
      <MessageFileList of={attached} />
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
          onPaste={event => attached.take(event, event.clipboardData)}
          onKeyDown={event => {
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing || !hasFinePointer()) return
            event.preventDefault()
            void send()
          }}
        />
        {live && (
          <button class="button" type="button" disabled={!ready} onClick={() => void steer()}>
            Steer
          </button>
        )}
        <button class="button primary" disabled={!ready}>
          Send
        </button>
      </div>
      <div class="row">
        <AttachButton to={attached} />
        <button
          class="button"
          type="button"
          data-key="message options"
          onClick={() => {
            choosing.value = true
          }}
        >
          Message options{chosenCount(choice) > 0 && `: ${chosenCount(choice)} chosen`}
        </button>
      </div>
      {choosing.value && (
        <MessageOptions
          agent={agent}
          choice={choice}
          close={() => {
            choosing.value = false
          }}
        />
      )}
      <FaultLine fault={action.fault} />
    </form>
  )
}
