// A turn on a model server against a bare fetch of the same stream: `node dist/test/bench/native.js`. The server is a
// separate process, forked by this file.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { nativeAdapter } from '../../plugins/agent/providers/native/native-adapter.js'
import { memorySessions } from '../../plugins/agent/providers/native/session.js'
import type { WireProtocol } from '../../plugins/endpoints/contract.js'
import { NativeWorld } from '../plugins/agent/providers/native-support.js'
import { ModelServer, streamedAs } from '../support/servers/model-server.js'
import { inTurns, median, ms, print, quick, ratio, timed, verdict, x } from './measure.js'

const SERVE = 'serve'
const PATHS: { readonly [path: string]: WireProtocol } = {
  '/v1/chat/completions': 'openai',
  '/v1/messages': 'anthropic',
  '/api/chat': 'ollama',
}
const PROTOCOLS = Object.values(PATHS)
const COUNT = quick ? 400 : 10_000
const A_SECOND = 2000
const SECONDS = quick ? 0.2 : 3
const ROUNDS = quick ? 2 : 15

/** Answers with `COUNT` deltas: as fast as possible, or 2000 per second if `paced`. */
const answer = async (protocol: WireProtocol, paced: boolean, response: ServerResponse): Promise<void> => {
  const count = paced ? A_SECOND * SECONDS : COUNT
  const pieces = streamedAs(protocol, { text: Array.from({ length: count }, (_, n) => `word ${n} `) })
  response.writeHead(200, { 'content-type': protocol === 'ollama' ? 'application/x-ndjson' : 'text/event-stream' })
  const startedAt = performance.now()
  for (let sent = 0; sent < pieces.length;) {
    const due = paced ? Math.ceil(((performance.now() - startedAt) * A_SECOND) / 1000) + 1 : sent + 50
    if (sent < due) response.write(pieces.slice(sent, due).join(''))
    sent = Math.max(sent, due)
    if (paced) await new Promise(resolve => setTimeout(resolve, 5))
    else if (response.writableNeedDrain) await once(response, 'drain')
  }
  response.end()
}

const serve = (): void => {
  const server = createServer((request, response) => {
    const [, paced, path] = /^(\/paced)?(.*)$/.exec(request.url ?? '')!
    request.resume().on('end', () => void answer(PATHS[path!]!, paced !== undefined, response))
  })
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
}

/** The milliseconds until the first and the last frame of the answer, and the number of frames. */
const turn = async (
  protocol: WireProtocol,
  baseUrl: string,
): Promise<{ first: number; all: number; frames: number }> => {
  const target = new ModelServer(protocol, []).target({ baseUrl })
  const world = new NativeWorld({ target })
  const adapter = nativeAdapter(
    { id: 'endpoint/bench', label: 'Bench', models: ['m'], target: async () => target },
    { sessions: memorySessions() },
  )
  const startedAt = performance.now()
  let [first, frames] = [0, 0]
  for await (const frame of adapter.run(world.request(1), world.io())) {
    if (frame.kind === 'error') throw new Error(frame.message)
    if (frame.kind !== 'delta') continue
    if (frames++ === 0) first = performance.now() - startedAt
  }
  return { first, all: performance.now() - startedAt, frames }
}

/** Reads the same stream and discards it. */
const bare = async (protocol: WireProtocol, baseUrl: string): Promise<{ first: number; all: number }> => {
  const path = Object.keys(PATHS).find(each => PATHS[each] === protocol)!
  const startedAt = performance.now()
  let first = 0
  const { body } = await fetch(baseUrl + path, { method: 'POST', body: '{}' })
  for await (const _piece of body!) first ||= performance.now() - startedAt
  return { first, all: performance.now() - startedAt }
}

const measure = async (): Promise<void> => {
  const child = fork(fileURLToPath(import.meta.url), [...process.argv.slice(2), SERVE])
  const [port] = (await once(child, 'message')) as [number]
  const address = `http://127.0.0.1:${port}`
  for (const protocol of PROTOCOLS) {
    const by = `native: ${protocol}`
    const cold = await timed(() => turn(protocol, address))
    print(`${by}, ${COUNT} deltas, first turn of the process`, ms(cold))
    const firsts: { readonly [way in 'bare' | 'turn']: number[] } = { bare: [], turn: [] }
    const rounds = await inTurns(
      {
        bare: async () => {
          const { first, all } = await bare(protocol, address)
          firsts.bare.push(first)
          return all
        },
        turn: async () => {
          const { first, all, frames } = await turn(protocol, address)
          if (frames !== COUNT) throw new Error(`expected ${COUNT} frames, found ${frames}`)
          firsts.turn.push(first)
          return all
        },
      },
      ROUNDS,
    )
    print(`${by}, time of a turn to a bare fetch`, x(ratio(rounds.turn, rounds.bare)))
    print(`${by}, first frame`, ms(median(firsts.turn)), `bare fetch ${ms(median(firsts.bare))}`)
    const later = firsts.turn.map((time, round) => time - firsts.bare[round]!)
    verdict(`${by}, first frame later than a bare fetch`, median(later), { most: 15, as: ms })
    const rate = (frames: number, time: number): number => Math.round((frames / time) * 1000)
    const asFast = rate(COUNT, median(rounds.turn))
    verdict(`${by}, frames a second as fast as they go`, asFast, { least: A_SECOND, as: String })
    const paced = await turn(protocol, `${address}/paced`)
    const wanted = Math.round(A_SECOND * 0.95)
    const got = rate(paced.frames, paced.all - paced.first)
    verdict(`${by}, frames a second of ${A_SECOND} deltas a second`, got, { least: wanted, as: String })
  }
  child.disconnect()
  child.kill()
}

if (process.argv.includes(SERVE)) serve()
else await measure()
