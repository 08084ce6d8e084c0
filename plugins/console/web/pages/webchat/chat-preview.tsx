import { useEffect, useRef } from 'preact/hooks'
import type { WebchatConfig } from '../../../../automations/contract.js'
import { ChatView } from '../../widget/view.js'

const MOST_CHARACTERS = 8000

/** The chat as visitors see it; what is written into it goes nowhere. */
export const ChatPreview = ({ webchat = {} }: { webchat?: WebchatConfig }) => {
  const box = useRef<HTMLDivElement>(null)
  const { title = 'Chat', greeting = '', accent = '#2563eb', position = 'bottom-right', requireName = false } = webchat
  useEffect(() => {
    const host = document.createElement('div')
    box.current?.append(host)
    const look = { title, greeting, accent, position, requireName, maxLength: MOST_CHARACTERS }
    const view: ChatView = new ChatView(
      host.attachShadow({ mode: 'closed' }),
      look,
      {
        toggled: () => {},
        send: text => {
          view.message('visitor', text)
          view.clear()
          view.note('This is a preview: nothing was sent.')
        },
      },
      true,
    )
    return () => host.remove()
  }, [title, greeting, accent, position, requireName])
  return <div ref={box} class="chat-preview" role="group" aria-label="Preview of the chat" />
}
