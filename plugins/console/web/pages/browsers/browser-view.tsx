import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type {
  BrowserAct,
  BrowserSession,
  ViewClientFrame,
  ViewMenu,
  ViewServerFrame,
} from '../../../../system/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { openSocket, type LiveSocket, type SocketState } from '../../data/socket.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { Dialog } from '../../ui/dialog.js'
import { visibleName } from '../../ui/format.js'
import { FaultLine } from '../../ui/page.js'
import { attachInput } from './view-input.js'
import { TextBlock } from '../../ui/text-block.js'
import { ignored } from '../../../../../sdk/ignored.js'

const STATES: { readonly [kind in SocketState['kind']]: string } = {
  opening: 'Connecting …',
  open: '',
  lost: 'The connection to the browser was lost; it is tried again.',
  closed: '',
}

const pictureOf = (data: string, format: string): Promise<ImageBitmap> =>
  createImageBitmap(
    new Blob([Uint8Array.from(atob(data), character => character.charCodeAt(0))], { type: `image/${format}` }),
  )

/** Draws pictures in order; skips one that a newer picture overtook. */
class Painter {
  readonly #canvas: HTMLCanvasElement
  #asked = 0
  #shown = 0

  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas
  }

  async draw(data: string, format: string): Promise<void> {
    const turn = ++this.#asked
    const picture = await pictureOf(data, format)
    if (turn > this.#shown) {
      this.#shown = turn
      this.#canvas.getContext('2d')?.drawImage(picture, 0, 0, this.#canvas.width, this.#canvas.height)
      this.#canvas.dataset.pictures = String(turn)
    }
    picture.close()
  }
}

interface MenuProps {
  readonly menu: ViewMenu
  readonly choose: (index: number) => void
}

/** The list of a drop-down that was opened on the page: pictures do not show it. */
const OpenMenu = ({ menu, choose }: MenuProps) => (
  <label class="view-bar">
    Choose
    <select class="input" value={menu.selected} onChange={event => choose(Number(event.currentTarget.value))}>
      {menu.options.map(({ label, disabled }, at) => (
        <option key={at} value={at} disabled={disabled}>
          {visibleName(label)}
        </option>
      ))}
    </select>
  </label>
)

const TextInput = ({ send }: { send: (frame: ViewClientFrame) => void }) => {
  const words = useSignal('')
  return (
    <form
      class="view-bar"
      onSubmit={event => {
        event.preventDefault()
        if (words.value) send({ type: 'text', text: words.value })
        words.value = ''
      }}
    >
      <input
        class="input"
        aria-label="Text to type on the page"
        placeholder="Text to type on the page"
        autocomplete="off"
        value={words.value}
        onInput={event => {
          words.value = event.currentTarget.value
        }}
      />
      <button class="button">Type</button>
      <button class="button" type="button" onClick={() => send({ type: 'key', key: 'Enter' })}>
        Enter
      </button>
      <button class="button" type="button" onClick={() => send({ type: 'key', key: 'Backspace' })}>
        Backspace
      </button>
    </form>
  )
}

/** A browser that is looked at and used: its pages, its address, and its picture. */
export const BrowserView = ({ session, leave }: { session: BrowserSession; leave: () => void }) => {
  const { name, pages } = session
  const canvas = useRef<HTMLCanvasElement>(null)
  const socket = useRef<LiveSocket<ViewClientFrame>>(undefined)
  const state = useSignal<SocketState>({ kind: 'opening' })
  const menu = useSignal<ViewMenu | null>(null)
  const said = useSignal('')
  const bound = useSignal<string | undefined>(undefined)
  const text = useSignal<string | undefined>(undefined)
  const action = useAction()
  const page = pages.find(({ id }) => id === bound.value) ?? pages.find(({ active }) => active) ?? pages[0]
  const address = useSignal('')
  const send = (frame: ViewClientFrame) => socket.current?.send(frame)
  const act = async (what: BrowserAct['action'], url?: string) => {
    const acted = await askDaemon('POST /system/browsers/{name}/page', {
      ...{ name, action: what },
      ...(page && { pageId: page.id }),
      ...(url && { url }),
    })
    refetch(new Set(['browsers']))
    return acted
  }
  useEffect(() => {
    address.value = page?.url ?? ''
  }, [page?.url])
  useEffect(() => {
    const painter = new Painter(canvas.current!)
    const receive = (frame: ViewServerFrame): void => {
      switch (frame.type) {
        case 'ready':
          canvas.current!.width = frame.width
          canvas.current!.height = frame.height
          if (bound.peek()) send({ type: 'bind', pageId: bound.peek()! })
          return
        case 'frame':
          said.value = ''
          return void painter.draw(frame.data, frame.format).catch(ignored('the next frame is drawn'))
        case 'select':
          menu.value = frame.menu
          return
        case 'selection':
          return void navigator.clipboard?.writeText(frame.text).catch(ignored('the browser may refuse its clipboard'))
        case 'gone':
          bound.value = undefined
          return
        case 'error':
          said.value = frame.message
          return
        default:
      }
    }
    const line: LiveSocket<ViewClientFrame> = openSocket<ViewServerFrame, ViewClientFrame>(
      { path: '/system/browser-view', purpose: 'browser', session: name },
      receive,
    )
    socket.current = line
    const unsubscribe = line.state.subscribe(value => {
      state.value = value
    })
    const detach = attachInput(canvas.current!, { send, left: leave })
    const look = () => send({ type: document.visibilityState === 'visible' ? 'resume' : 'pause' })
    document.addEventListener('visibilitychange', look)
    return () => {
      document.removeEventListener('visibilitychange', look)
      detach()
      unsubscribe()
      line.close()
    }
  }, [name])
  const button = (label: string, work: () => Promise<unknown>) => (
    <ActionButton action={action} work={work}>
      {label}
    </ActionButton>
  )
  return (
    <>
      <form
        class="view-bar"
        onSubmit={event => {
          event.preventDefault()
          const url = address.value.trim()
          void action.run(() => act('goto', /^(?:https?:\/\/|about:)/.test(url) ? url : `http://${url}`))
        }}
      >
        {button('Back', () => act('back'))}
        {button('Forward', () => act('forward'))}
        {button('Reload', () => act('reload'))}
        <input
          class="input mono"
          aria-label="Address"
          inputMode="url"
          autocomplete="off"
          spellcheck={false}
          value={address.value}
          onInput={event => {
            address.value = event.currentTarget.value
          }}
        />
        <button class="button" disabled={action.busy}>
          Go
        </button>
        {pages.length > 1 && (
          <select
            class="input"
            aria-label="Page"
            value={page?.id}
            onChange={event => {
              bound.value = event.currentTarget.value
              send({ type: 'bind', pageId: event.currentTarget.value })
            }}
          >
            {pages.map(({ id, title, url }) => (
              <option key={id} value={id}>
                {visibleName(title || url)}
              </option>
            ))}
          </select>
        )}
        {button('Read as text', async () => {
          text.value = (await act('capture')).capture?.text ?? ''
        })}
      </form>
      <FaultLine fault={action.fault || state.value.fault || said.value} />
      <p role="status" class="quiet small terminal-state">
        {STATES[state.value.kind]}
      </p>
      {menu.value && (
        <OpenMenu
          menu={menu.value}
          choose={index => {
            send({ type: 'selectOption', index })
            menu.value = null
          }}
        />
      )}
      <div class="view-stage">
        <canvas
          ref={canvas}
          class="view-canvas"
          width={1280}
          height={800}
          tabIndex={0}
          role="application"
          aria-label={`Page ${visibleName(page?.title || page?.url || name)}`}
          data-keys="all"
        />
      </div>
      <TextInput send={send} />
      <p class="quiet small terminal-hint wide-only">
        While the picture has the focus, keys go to the page. Ctrl+Shift+E leaves it.
      </p>
      {text.value !== undefined && (
        <Dialog
          title="Text of the page"
          close={() => {
            text.value = undefined
          }}
        >
          {text.value === '' ? (
            <p class="quiet">There is no text.</p>
          ) : (
            <TextBlock dir="auto" what="the text of the page" text={text.value} />
          )}
          <div class="card-actions">
            <button
              class="button"
              type="button"
              onClick={() => {
                text.value = undefined
              }}
            >
              Close
            </button>
          </div>
        </Dialog>
      )}
    </>
  )
}
