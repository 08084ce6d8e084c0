import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Readable, Writable } from 'node:stream'
import {
  client,
  type AnyMessage,
  type ClientCapabilities,
  type ClientConnection,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  ndJsonStream,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionNotification,
} from '@agentclientprotocol/sdk'
import type { Test } from 'tap'
import { ALSO_UNWALLED } from '../../../support/walls.js'
import { PROGRAM } from '../cli-process.js'

/** A change that an editor was told of. */
export type Told = SessionNotification['update']

/** What an editor does, beside what a test asks of it. */
export interface EditorOptions {
  readonly args: readonly string[]
  /** Left out: `acp`. */
  readonly words?: readonly string[]
  readonly cwd?: string
  readonly env?: { readonly [name: string]: string }
  readonly capabilities?: ClientCapabilities
  readonly permission?: (
    asked: RequestPermissionRequest,
  ) => RequestPermissionResponse | Promise<RequestPermissionResponse>
  readonly form?: (asked: CreateElicitationRequest) => CreateElicitationResponse
}

/** An editor, and the built program that it started. */
export interface Editor {
  readonly connection: ClientConnection
  readonly agent: ClientConnection['agent']
  readonly told: SessionNotification[]
  /** What it was told of a session, of one kind. */
  of<K extends Told['sessionUpdate']>(kind: K, session?: string): Extract<Told, { sessionUpdate: K }>[]
  /** What the agent said in a session. */
  text(session?: string): string
  /** Resolves when it was told something that fits. */
  until(fits: (told: Told) => boolean): Promise<void>
  /** The editor goes without a word. */
  vanish(): void
  readonly ended: Promise<number | null>
  readonly stderr: () => string
}

/** Writes raw text to the program instead of speaking through the library. */
export const rawProgram = (t: Pick<Test, 'teardown'>, args: readonly string[]) => {
  const child = spawn(process.execPath, [PROGRAM, 'acp', ...args], { env: { ...process.env, ...ALSO_UNWALLED } })
  const lines: AnyMessage[] = []
  let rest = ''
  let heard = () => {}
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  child.stdin.on('error', () => {})
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    const all = (rest + piece).split('\n')
    rest = all.pop()!
    for (const line of all) lines.push(JSON.parse(line) as AnyMessage)
    heard()
  })
  const ended = once(child, 'close').then(([code]) => code as number | null)
  t.teardown(() => void child.kill())
  return {
    write: (text: string) => child.stdin.write(text),
    end: () => child.stdin.end(),
    ended,
    stderr: () => stderr,
    /** Waits for as many answers. */
    answers: async (count: number) => {
      while (lines.length < count)
        await new Promise<void>(resolve => {
          heard = resolve
        })
      return lines
    },
  }
}

/** Starts the built program as an editor does, and connects to it with the protocol's own client. */
export const editorOf = async (t: Pick<Test, 'teardown'>, options: EditorOptions): Promise<Editor> => {
  const { words = ['acp'] } = options
  const child = spawn(process.execPath, [PROGRAM, ...words, ...options.args], {
    cwd: options.cwd,
    // It finds the daemon by what it is given, not by where daemons are usually noted.
    env: { ...process.env, ...ALSO_UNWALLED, XDG_STATE_HOME: '/nowhere', ...options.env },
  })
  const ended = once(child, 'exit').then(([code]) => code as number | null)
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  child.stdin.on('error', () => {})
  const told: SessionNotification[] = []
  const waiting = new Set<() => void>()
  const app = client({ name: 'test' })
    .onNotification('session/update', ({ params }) => {
      told.push(params)
      for (const look of waiting) look()
    })
    .onRequest('session/request_permission', ({ params }) =>
      options.permission ? options.permission(params) : { outcome: { outcome: 'cancelled' } },
    )
    .onRequest('elicitation/create', ({ params }) => (options.form ? options.form(params) : { action: 'cancel' }))
  const connection = app.connect(
    ndJsonStream(
      Writable.toWeb(child.stdin) as WritableStream<Uint8Array>,
      Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
    ),
  )
  t.teardown(async () => {
    connection.close()
    child.stdin.destroy()
    child.kill()
    await ended
  })
  await connection.agent.request('initialize', {
    protocolVersion: 1,
    clientCapabilities: options.capabilities ?? {},
  })
  const of = <K extends Told['sessionUpdate']>(kind: K, session?: string) =>
    told
      .filter(({ sessionId }) => session === undefined || sessionId === session)
      .map(({ update }) => update)
      .filter((update): update is Extract<Told, { sessionUpdate: K }> => update.sessionUpdate === kind)
  return {
    connection,
    agent: connection.agent,
    told,
    of,
    text: session =>
      of('agent_message_chunk', session)
        .map(({ content }) => (content.type === 'text' ? content.text : ''))
        .join(''),
    until: fits =>
      new Promise(resolve => {
        const look = () => {
          if (!told.some(({ update }) => fits(update))) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    vanish: () => void child.kill('SIGKILL'),
    ended,
    stderr: () => stderr,
  }
}
