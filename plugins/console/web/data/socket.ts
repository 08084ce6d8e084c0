import { signal, type Signal } from '@preact/signals-core'
import type { TicketPurpose } from '../../../system/contract.js'
import { Refusal } from '../../../../sdk/refusal.js'
import { askDaemon, faultSentence } from './api.js'

/** The state of a socket. */
export interface SocketState {
  readonly kind: 'opening' | 'open' | 'lost' | 'closed'
  /** The daemon's reason for refusing it. */
  readonly fault?: string
}

/** A socket that is opened again when it is cut. */
export interface LiveSocket<Out> {
  readonly state: Signal<SocketState>
  /** Sends a frame; without an open socket it is dropped. */
  send(frame: Out): void
  /** Closes it permanently. */
  close(): void
}

/** The target of a socket. */
export interface SocketTarget {
  readonly path: '/system/terminal' | '/system/browser-view'
  readonly purpose: TicketPurpose
  readonly session: string
  /** More fields of the query, as they are when it is opened. */
  readonly query?: () => { readonly [name: string]: string }
}

const FIRST_MS = 500
const MOST_MS = 15_000
/** The daemon disconnects a client that sends nothing for 90 s. */
const PING_MS = 30_000

/** Opens a socket with a ticket, and keeps it open: `opened` is called each time, before anything is received. */
export const openSocket = <In extends { readonly type: string }, Out extends { readonly type: string }>(
  { path, purpose, session, query }: SocketTarget,
  receive: (frame: In) => void,
  opened: () => void = () => {},
): LiveSocket<Out | { readonly type: 'ping' }> => {
  const state = signal<SocketState>({ kind: 'opening' })
  let socket: WebSocket | undefined
  let delay = FIRST_MS
  let timer: ReturnType<typeof setTimeout> | undefined
  let closed = false
  const send = (frame: object): void => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(frame))
  }
  const later = (fault?: string): void => {
    if (closed) return
    state.value = { kind: 'lost', ...(fault && { fault }) }
    timer = setTimeout(() => void open(), delay)
    delay = Math.min(delay * 2, MOST_MS)
  }
  const open = async (): Promise<void> => {
    let ticket: string
    try {
      ticket = (await askDaemon('POST /system/ws-ticket', { for: purpose, name: session })).ticket
    } catch (error) {
      if (!(error instanceof Refusal) || error.reason === 'unavailable' || error.reason === 'too-many')
        return later(faultSentence(error))
      return end({ kind: 'closed', fault: faultSentence(error) })
    }
    if (closed) return
    const address = new URL(path, location.origin.replace(/^http/, 'ws'))
    for (const [name, value] of Object.entries({ session, ticket, ...query?.() })) address.searchParams.set(name, value)
    const attempt = new WebSocket(address)
    socket = attempt
    attempt.onopen = () => {
      delay = FIRST_MS
      state.value = { kind: 'open' }
      opened()
    }
    attempt.onmessage = ({ data }) => receive(JSON.parse(String(data)) as In)
    attempt.onclose = () => {
      if (socket === attempt) later()
    }
  }
  const ping = setInterval(() => send({ type: 'ping' }), PING_MS)
  const end = (last: SocketState): void => {
    closed = true
    clearInterval(ping)
    clearTimeout(timer)
    socket?.close()
    state.value = last
  }
  void open()
  return { state, send, close: () => end({ kind: 'closed' }) }
}
