import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { TerminalClientFrame, TerminalServerFrame, TerminalSession } from '../../../../system/contract.js'
import { faultSentence } from '../../data/api.js'
import { openSocket, type LiveSocket, type SocketState } from '../../data/socket.js'
import { visibleName } from '../../ui/format.js'
import { FaultLine } from '../../ui/page.js'
import type { TerminalScreen } from './screen.js'

/** Keys that the keyboard of a phone lacks, and what they send. */
const EXTRA_KEYS = [
  ['Esc', '\u001b'],
  ['Tab', '\t'],
  ['↑', '\u001b[A'],
  ['↓', '\u001b[B'],
  ['←', '\u001b[D'],
  ['→', '\u001b[C'],
  ['Ctrl C', '\u0003'],
  ['Ctrl D', '\u0004'],
] as const
const NAMES: { readonly [key: string]: string } = { '↑': 'Up', '↓': 'Down', '←': 'Left', '→': 'Right' }

const STATES: { readonly [kind in SocketState['kind']]: string } = {
  opening: 'Connecting …',
  open: '',
  lost: 'The connection to the terminal was lost; it is tried again.',
  closed: '',
}

/** One line to type, for keyboards that the terminal does not understand. */
const LineInput = ({ send }: { send: (text: string) => void }) => {
  const line = useSignal('')
  return (
    <form
      class="row terminal-line"
      onSubmit={event => {
        event.preventDefault()
        send(`${line.value}\r`)
        line.value = ''
      }}
    >
      <input
        class="input grow mono"
        aria-label="Line to type"
        autocapitalize="off"
        autocomplete="off"
        spellcheck={false}
        value={line.value}
        onInput={event => {
          line.value = event.currentTarget.value
        }}
      />
      <button class="button">Enter</button>
    </form>
  )
}

type Frames = LiveSocket<TerminalClientFrame>

/** A terminal that is watched and typed into. */
export const TerminalView = ({ session, leave }: { session: TerminalSession; leave: () => void }) => {
  const { name, running, exitCode } = session
  const box = useRef<HTMLDivElement>(null)
  const socket = useRef<Frames>(undefined)
  const state = useSignal<SocketState>({ kind: 'opening' })
  const ended = useSignal<number | undefined>(running ? undefined : exitCode)
  const fault = useSignal('')
  const send = (data: string) => socket.current?.send({ type: 'input', data })
  useEffect(() => {
    let screen: TerminalScreen | undefined
    let gone = false
    let unsubscribe = (): void => {}
    const begin = async (): Promise<void> => {
      const { openScreen } = await import('./screen.js')
      if (gone) return
      const shown = openScreen(box.current!, {
        typed: send,
        resized: size => socket.current?.send({ type: 'resize', ...size }),
        left: leave,
      })
      screen = shown
      const line: Frames = openSocket<TerminalServerFrame, TerminalClientFrame>(
        {
          ...{ path: '/system/terminal', purpose: 'terminal', session: name },
          query: () => ({ cols: String(shown.size().cols), rows: String(shown.size().rows) }),
        },
        frame => {
          if (frame.type === 'data') shown.write(frame.data)
          if (frame.type !== 'exit') return
          ended.value = frame.code
          line.close()
        },
        () => shown.reset(),
      )
      socket.current = line
      unsubscribe = line.state.subscribe(value => {
        state.value = value
      })
      shown.focus()
    }
    begin().catch(error => {
      fault.value = faultSentence(error)
    })
    return () => {
      gone = true
      unsubscribe()
      socket.current?.close()
      screen?.close()
    }
  }, [name])
  return (
    <>
      <FaultLine fault={fault.value || state.value.fault || ''} />
      <p role="status" class="quiet small terminal-state">
        {ended.value === undefined ? STATES[state.value.kind] : `Its program has ended with code ${ended.value}.`}
      </p>
      <div class="terminal-box" ref={box} data-keys="all" role="group" aria-label={`Terminal ${visibleName(name)}`} />
      {ended.value === undefined && (
        <div class="terminal-keys">
          <div class="row" role="toolbar" aria-label="Keys">
            {EXTRA_KEYS.map(([label, text]) => (
              <button key={label} class="button" type="button" aria-label={NAMES[label]} onClick={() => send(text)}>
                {label}
              </button>
            ))}
          </div>
          <LineInput send={send} />
        </div>
      )}
      <p class="quiet small terminal-hint wide-only">Ctrl+Shift+E leaves the terminal. It goes on without you.</p>
    </>
  )
}
