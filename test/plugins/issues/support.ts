import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import type { Issue, Reporter } from '../../../plugins/issues/contract.js'
import type { Client } from '../../../sdk/client.js'
import type { Input } from '../../../sdk/contract.js'
import type { IssuesCalls } from '../../../plugins/issues/contract.js'
import type { Support } from '../../support/daemon.js'

/** A new id of an event. */
export const eventId = (): string => randomBytes(16).toString('hex')

/** An event with an exception of one frame, as an SDK sends it. */
export const failure = (type: string, frame: object = {}, more: object = {}) => ({
  event_id: eventId(),
  platform: 'node',
  exception: {
    values: [
      {
        ...{ type, value: `${type} happened` },
        stacktrace: { frames: [{ filename: 'app.js', function: 'pay', lineno: 7, colno: 3, in_app: true, ...frame }] },
      },
    ],
  },
  ...more,
})

/** An envelope with items: each a type and its payload. */
export const envelope = (items: readonly (readonly [type: string, payload: object | string])[], header: object = {}) =>
  [
    JSON.stringify(header),
    ...items.flatMap(([type, payload]) => {
      const text = typeof payload === 'string' ? payload : JSON.stringify(payload)
      return [JSON.stringify({ type, length: Buffer.byteLength(text) }), text]
    }),
    '',
  ].join('\n')

/** Sends a body to the address of a reporter. */
export const send = (
  { url }: Pick<Support, 'url'>,
  { id, key }: Pick<Reporter, 'id' | 'key'>,
  body: string | Uint8Array,
  headers: { [name: string]: string } = {},
  as = 'envelope',
): Promise<Response> =>
  fetch(`${url}/ingest/api/${id}/${as}/`, {
    method: 'POST',
    headers: { 'x-sentry-auth': `Sentry sentry_version=7, sentry_key=${key}`, ...headers },
    body: Buffer.from(body),
  })

/** Reports one event, and returns the status. */
export const report = async (daemon: Pick<Support, 'url'>, reporter: Pick<Reporter, 'id' | 'key'>, event: object) =>
  (await send(daemon, reporter, envelope([['event', event]]))).status

export const newReporter = (client: Client, input: Partial<Input<IssuesCalls, 'POST /issues/reporters'>> = {}) =>
  client.call('POST /issues/reporters', { label: 'Shop', ...input })

/** The issues of a reporter, in any state. */
export const issuesOf = async (client: Client, { id }: Pick<Reporter, 'id'>): Promise<Issue[]> =>
  (await client.call('GET /issues', { reporter: id, state: 'all' })).issues

/** Runs a program to its end, whatever that is. */
export const runProgram = (file: string, env: { [name: string]: string }): Promise<unknown> =>
  promisify(execFile)(process.execPath, [file], { env: { ...process.env, ...env } }).catch((error: unknown) => error)
