import type { IncomingMessage } from 'node:http'
import type { Test } from 'tap'
import { WebSocket, type ClientOptions } from 'ws'

/** A frame of the test group. */
export interface Seen {
  readonly type: string
  readonly text?: string
  readonly by?: string
  readonly at?: number
  readonly data?: string
  readonly code?: number
}

/** A client of a socket, and the frames it received. */
export interface Talk {
  readonly ws: WebSocket
  readonly seen: Seen[]
  say(frame: unknown): void
  /** The next frame that matches. */
  until(fits: (frame: Seen) => boolean): Promise<Seen>
  /** The code and the reason of its close. */
  readonly closed: Promise<{ code: number; reason: string }>
}

/** The refusal of a socket. */
export interface Turned {
  readonly status: number
  readonly body: { readonly message: string; readonly reason: string }
  readonly headers: { readonly [name: string]: string | string[] | undefined }
}

/** Opens a socket, or returns its refusal. */
export const openSocket = async (
  t: Pick<Test, 'teardown'>,
  url: string,
  options: ClientOptions = {},
): Promise<Talk | Turned> => {
  const ws = new WebSocket(url.replace(/^http/, 'ws'), options)
  t.teardown(() => void (ws.readyState === ws.CONNECTING || ws.terminate()))
  const seen: Talk['seen'] = []
  let wake = () => {}
  ws.on('message', data => {
    seen.push(JSON.parse(String(data)) as Seen)
    wake()
  })
  ws.on('error', () => {})
  const closed = new Promise<{ code: number; reason: string }>(resolve =>
    ws.on('close', (code, reason) => {
      wake()
      resolve({ code, reason: String(reason) })
    }),
  )
  let next = 0
  const turned = new Promise<IncomingMessage>(resolve =>
    ws.on('unexpected-response', (_, answer) => resolve(answer)),
  ).then(async answer => {
    const parts: Buffer[] = []
    for await (const part of answer) parts.push(part as Buffer)
    return {
      status: answer.statusCode!,
      headers: answer.headers,
      body: JSON.parse(Buffer.concat(parts).toString()) as Turned['body'],
    }
  })
  const opened = new Promise<void>(resolve => ws.on('open', resolve)).then((): Talk => ({
    ws,
    seen,
    closed,
    say: frame => ws.send(JSON.stringify(frame)),
    until: async fits => {
      for (;;) {
        while (next < seen.length) if (fits(seen[next++]!)) return seen[next - 1]!
        if (ws.readyState === ws.CLOSED)
          throw new Error(`the socket closed before the expected frame, after ${JSON.stringify(seen.slice(-5))}`)
        await new Promise<void>(resolve => (wake = resolve))
      }
    },
  }))
  return Promise.race([opened, turned])
}

/** Opens a socket that must not be refused. */
export const talkTo = async (t: Pick<Test, 'teardown'>, url: string, options?: ClientOptions): Promise<Talk> => {
  const found = await openSocket(t, url, options)
  if ('status' in found) throw new Error(`refused with ${found.status}: ${found.body.message}`)
  return found
}

/** The refusal of a socket that must not open. */
export const turnedAway = async (t: Pick<Test, 'teardown'>, url: string, options?: ClientOptions): Promise<Turned> => {
  const found = await openSocket(t, url, options)
  if (!('status' in found)) throw new Error('expected a refusal, but the socket opened')
  return found
}
