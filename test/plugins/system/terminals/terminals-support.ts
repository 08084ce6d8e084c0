import { join } from 'node:path'
import headless from '@xterm/headless'
import type { Test } from 'tap'
import { Capture, type OpenCapture } from '../../../../plugins/system/terminals/capture.js'
import type { Client } from '../../../../sdk/client.js'
import { daemonWith, type Support, type SupportOptions } from '../../../support/daemon.js'
import { talkTo, type Seen, type Talk } from '../../../support/sockets/client.js'

/** Logs terminals like the daemon, in the logs of a data folder. */
export const captureIn =
  (data: string): OpenCapture =>
  (name, size) =>
    Capture.open(join(data, 'logs', 'terminals', `${name}.log`), size)

/** A daemon with group system, whose terminals end with the test. */
export const withTerminals = async (t: Test, options: SupportOptions = {}, groups = ['system']): Promise<Support> => {
  return daemonWith(t, groups, options)
}

/** A socket on a terminal, with its output as one text. */
export interface Attached extends Talk {
  readonly text: () => string
  type(text: string): void
  /** Waits until the output matches. */
  shows(pattern: RegExp): Promise<string>
  exit(): Promise<number | undefined>
}

/** Attaches to a terminal with a ticket, like a person's browser. */
export const attach = async (
  t: Pick<Test, 'teardown'>,
  { url, client }: { url: string; client: Client },
  session: string,
  query = '',
): Promise<Attached> => {
  const { ticket } = await client.call('POST /system/ws-ticket', { for: 'terminal', name: session })
  return attached(await talkTo(t, `${url}/system/terminal?session=${session}&ticket=${ticket}${query}`))
}

/** The terminal on a socket. */
export const attached = (talk: Talk): Attached => {
  let text = ''
  let read = 0
  const take = () => {
    for (; read < talk.seen.length; read++) text += talk.seen[read]!.data ?? ''
    return text
  }
  const isData = ({ type }: Seen) => type === 'data'
  return {
    ...talk,
    text: take,
    type: data => talk.say({ type: 'input', data }),
    shows: async pattern => {
      while (!pattern.test(take()))
        await talk
          .until(isData)
          .catch(error => Promise.reject(new Error(`${(error as Error).message}; it showed ${take().slice(-500)}`)))
      return text
    },
    exit: async () => (await talk.until(({ type }) => type === 'exit')).code,
  }
}

/** The lines that a terminal shows for a text, with its history. */
export const linesOf = async (text: string): Promise<string[]> => {
  const terminal = new headless.Terminal({ cols: 80, rows: 24, scrollback: 50_000, allowProposedApi: true })
  await new Promise<void>(resolve => terminal.write(text, resolve))
  const { normal } = terminal.buffer
  return Array.from({ length: normal.length }, (_, at) => normal.getLine(at)!.translateToString(true))
}
