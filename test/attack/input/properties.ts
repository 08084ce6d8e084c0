import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createConnection } from 'node:net'
import fc from 'fast-check'
import type { Test } from 'tap'
import { OF_NO_OPERATION, operationOf } from '../../support/answers.js'
import { misfits, OPERATIONS, type Operation } from '../../support/schema.js'
import { freshSession } from '../calls.js'
import { requestsOf, type Sent } from './inputs.js'
import { head, type RawAnswer } from '../support.js'
import { openWorld, type World } from './world.js'
import { EVERY_CASE } from '../../support/lists.js'

const SEED = Number(process.env.SANDBOX_PROPERTY_SEED ?? 20_260)
const RUNS = Number(process.env.SANDBOX_PROPERTY_RUNS ?? (EVERY_CASE ? 6 : 3))
const PATIENCE = 10_000

/** Sends a raw request and returns the answer: all of it, or the first events of a stream. */
const exchange = async (url: string, { method, target, headers, body }: Sent, session: string): Promise<RawAnswer> => {
  const { hostname, port, host } = new URL(url)
  const chunked = headers.some(([name]) => name === 'transfer-encoding')
  const content = chunked
    ? Buffer.concat([
        Buffer.from(body.length ? `${body.length.toString(16)}\r\n` : ''),
        body,
        Buffer.from(`${body.length ? '\r\n' : ''}0\r\n\r\n`),
      ])
    : body
  const own = headers.some(([name]) => name === 'authorization')
    ? []
    : [['authorization', `Bearer ${session}`] as const]
  const socket = createConnection(Number(port), hostname)
  socket.on('error', () => {})
  socket.setTimeout(PATIENCE, () => socket.destroy())
  socket.write(
    Buffer.concat([Buffer.from(head(method, target, [['host', host], ...own, ...headers]), 'latin1'), content]),
  )
  const parts: Buffer[] = []
  socket.on('data', (part: Buffer) => {
    parts.push(part)
    const text = Buffer.concat(parts.slice(-2)).toString()
    // A request that expects `100 Continue` gets that first.
    const start = Buffer.concat(parts.slice(0, 2)).toString()
    if (/^HTTP\/1\.1 200[^]*text\/event-stream/m.test(start) && /\ndata: .*\n\n/.test(text)) socket.destroy()
  })
  await once(socket, 'close')
  const [first = '', ...rest] = Buffer.concat(parts)
    .toString()
    .replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, '')
    .split('\r\n\r\n')
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1] ?? 0), headers: first, body: rest.join('\r\n\r\n') }
}

const parsed = (text: string): { message?: unknown; errors?: { path: string; expected: string }[] } | undefined => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Checks the message of a refusal: no internals, and the field if one is invalid. */
const sentence = (status: number, text: string): string[] => {
  const body = parsed(text)
  const message = body?.message
  if (typeof message !== 'string' || message.trim() === '')
    return [`the body of ${status} has no message: ${text.slice(0, 200)}`]
  const wrong: string[] = []
  if (!/\s\S+\s/.test(message)) wrong.push('is no sentence')
  if (/[\r\n]|[^.]\.$|^[A-Z][a-z]/.test(message.replace(/served at .*/, '')))
    wrong.push('has a line break, a full stop at its end or a capital at its beginning')
  if (/\bat .*\.js:\d|node:|\[object |Error:|ENOENT|EINVAL/.test(message)) wrong.push('tells what happened inside')
  if (message.length > 1200) wrong.push(`has ${message.length} characters`)
  for (const { path, expected } of body?.errors ?? [])
    if (expected === '' || typeof path !== 'string') wrong.push('has an error without a place or an expectation')
  const [first] = body?.errors ?? []
  if (first && !(message.includes(first.path || 'input') && /found |named /.test(message)))
    wrong.push('does not name the first of its errors and what was found there')
  if (
    (status === 400 || status === 422)
    && !/found|not|no |more|deeper|already|cannot|takes|has|ended|twice|names/.test(message)
  )
    wrong.push('does not tell what was found')
  return wrong.map(what => `the sentence of ${status} ${what}: ${message.slice(0, 300)}`)
}

/** The differences of an answer from the published document. */
const faults = (
  { call, responses }: Operation,
  { method, target }: Pick<Sent, 'method' | 'target'>,
  { status, headers, body }: RawAnswer,
): string[] => {
  if (status === 0) return ['no answer came']
  // A missing program or store is an accepted refusal if the call declares it.
  if (status >= 500 && !((status === 501 || status === 503) && Object.hasOwn(responses, status)))
    return [`a failure: ${status} ${body.slice(0, 300)}`]
  if (status === 204 || status === 304) return body === '' ? [] : [`${status} with a body`]
  const elsewhere = status === 404 && operationOf(method, target)?.call !== call
  const type = /\r\ncontent-type: ([^;\r]*)/i.exec(headers)?.[1] ?? ''
  // Shared pages answer a browser with a page, whatever the status.
  const isPage = type === 'text/html' && call === 'GET /s/{id}/{path}'
  if (status >= 400)
    return [
      ...(elsewhere || Object.hasOwn(responses, status) || OF_NO_OPERATION.has(status)
        ? []
        : [`${call} does not declare the status ${status}`]),
      ...(isPage ? [] : sentence(status, body)),
    ]
  const { [type]: published, '*/*': bytes } = responses[status]?.content ?? {}
  if (bytes && !published) return []
  if (!published) return [`${call} does not publish an answer ${status} of type ${type}`]
  const { schema } = published
  if (!schema) return []
  if (type === 'application/json') return misfits(schema, JSON.parse(body))
  if (type !== 'text/event-stream') return []
  return [...body.matchAll(/^event: (.*)\n(?:id: (.*)\n)?data: (.*)\n\n/gm)].flatMap(([, event, id, data]) =>
    misfits(schema, { event, ...(id !== undefined && { id }), data: JSON.parse(data!) }),
  )
}

const shown = ({ method, target, headers, body }: Sent): string => {
  const heads = headers.map(([name, value]) => `${name.slice(0, 40)}: ${value.slice(0, 60)}`)
  return [`${method} ${target.slice(0, 200)}`, ...heads, body.toString().slice(0, 1000)].join('\n')
}

/** Checks what must hold after every request. */
const holds = async (world: World, operation: Operation, sent: Sent, before: string): Promise<string> => {
  const { daemon } = world
  const answer = await exchange(daemon.url, sent, freshSession(daemon))
  const wrong = faults(operation, sent, answer)
  if (wrong.length) throw new Error(`${wrong.join('\n')}\n${shown(sent)}`)
  if (answer.status >= 200 && answer.status < 400 && operation.method !== 'GET') {
    await world.settle()
    return world.state()
  }
  const after = await world.state()
  if (after !== before)
    throw new Error(
      `${answer.status} ${answer.body.slice(0, 200)} changed something:\n${difference(before, after)}\n${shown(sent)}`,
    )
  return after
}

const difference = (before: string, after: string): string => {
  const [old, now] = [before.split('\n'), after.split('\n')]
  return [
    ...old.filter(line => !now.includes(line)).map(line => `- ${line}`),
    ...now.filter(line => !old.includes(line)).map(line => `+ ${line}`),
  ]
    .slice(0, 20)
    .join('\n')
}

/** Temporary files of writes and uploads. */
const leftovers = (...folders: string[]): string[] =>
  folders.flatMap(folder =>
    (readdirSync(folder, { recursive: true }) as string[]).filter(name =>
      /(^|\/)(\.sandbox-write-|form-)|\.tmp$/.test(name),
    ),
  )

/** The test files that share the calls: tap runs several at once. */
export const SHARES = ['properties', 'properties-second', 'properties-third'] as const

/** Sends nearly valid requests to the calls of one of the files. */
export const probeCalls = (t: Test, share: (typeof SHARES)[number]): void =>
  void t.test(
    'every call answers any request or refuses it with a message, and a refusal changes nothing '
      + `(seed ${SEED}, ${RUNS} runs)`,
    async t => {
      const world = await openWorld(t)
      for (const [at, operation] of OPERATIONS.entries()) {
        if (SHARES[at % SHARES.length] !== share) continue
        const began = performance.now()
        let before = await world.state()
        const property = fc.asyncProperty(requestsOf(operation, await world.known()), async sent => {
          try {
            before = await holds(world, operation, sent, before)
          } catch (error) {
            await world.settle()
            before = await world.state()
            throw error
          }
        })
        const { failed, counterexample, errorInstance, seed, counterexamplePath } = (await fc.check(property, {
          // Of its own: otherwise one call is given as a secret what another may show.
          seed: SEED + at,
          numRuns: RUNS,
        })) as fc.RunDetails<[Sent]> & { errorInstance?: Error }
        t.notOk(
          failed,
          `${operation.call}, ${Math.round(performance.now() - began)} ms`,
          failed
            ? {
                diagnostic: true,
                seed,
                path: counterexamplePath,
                why: errorInstance?.message,
                sent: counterexample && shown(counterexample[0]),
              }
            : {},
        )
      }
      t.same(leftovers(world.daemon.data, world.daemon.workspace), [], 'no temporary file is left behind')
      t.same(
        world.daemon.logged.filter(line => /"level":(50|60|"error"|"fatal")/.test(line)),
        [],
        'no request failed internally',
      )
    },
  )
