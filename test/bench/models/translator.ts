// A streamed answer through the translator, in another protocol, against the same answer of the server itself:
// `node dist/test/bench/models/translator.js`. The server is a separate process, forked by this file.
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { DaemonNews, ProcessNews } from '../../../plugins/routed/link/messages.js'
import { hashOf } from '../../../sdk/node/access/secret.js'
import { programFile } from '../../../sdk/node/programs/package.js'
import { streamedAs } from '../../support/servers/model-server.js'
import { inTurns, median, ms, print, quick, verdict } from '../measure.js'

const SERVE = 'serve'
const A_SECOND = 2000
const SECONDS = quick ? 0.2 : 3
const ROUNDS = quick ? 2 : 15
const BEARER = 'bench-bearer'

/** Answers with 2,000 deltas a second, or with a few at once. */
const answer = async (paced: boolean, response: ServerResponse): Promise<void> => {
  const count = paced ? A_SECOND * SECONDS : 3
  const pieces = streamedAs('openai', { text: Array.from({ length: count }, (_, n) => `word ${n} `) })
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const startedAt = performance.now()
  for (let sent = 0; sent < pieces.length;) {
    const due = paced ? Math.ceil(((performance.now() - startedAt) * A_SECOND) / 1000) + 1 : pieces.length
    if (sent < due) response.write(pieces.slice(sent, due).join(''))
    sent = Math.max(sent, due)
    if (paced) await new Promise(resolve => setTimeout(resolve, 5))
  }
  response.end()
}

const serve = (): void => {
  const server = createServer((request, response) => {
    request.resume().on('end', () => void answer(request.url?.startsWith('/paced') ?? false, response))
  })
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
}

interface Heard {
  /** Milliseconds until the first delta and the last one. */
  readonly first: number
  readonly all: number
  readonly deltas: number
}

/** Asks for an answer; `delta` is in each event that says a word. */
const ask = async (url: string, body: object, delta: string): Promise<Heard> => {
  const startedAt = performance.now()
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${BEARER}` }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(await response.text())
  let [first, deltas, rest] = [0, 0, '']
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop()!
    const found = lines.filter(line => line.startsWith('data:') && line.includes(delta)).length
    if (found > 0 && deltas === 0) first = performance.now() - startedAt
    deltas += found
  }
  return { first, all: performance.now() - startedAt, deltas }
}

const measure = async (): Promise<void> => {
  const server = fork(fileURLToPath(import.meta.url), [SERVE])
  const [port] = (await once(server, 'message')) as [number]
  const base = (path: string) => `http://127.0.0.1:${port}${path}`
  const child = spawn(process.execPath, [programFile('plugins/routed/serving/translator-child.js'), '0'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const send = (news: DaemonNews) => child.stdin.write(`${JSON.stringify(news)}\n`)
  const listening = Promise.withResolvers<number>()
  createInterface({ input: child.stdout }).on('line', line => {
    const news = JSON.parse(line) as ProcessNews
    if (news.news === 'listening') listening.resolve(news.port)
    if (news.news !== 'ask') return
    const lent = {
      lease: 'l',
      account: 'a',
      headers: { authorization: 'Bearer k' },
      renewable: false,
      masks: false,
      listeners: [],
    }
    send({ news: 'answer', id: news.id, output: lent })
  })
  const translator = `http://127.0.0.1:${await listening.promise}/v1/messages`
  const models = [{ id: 'm', label: 'M' }]
  const provider = (id: string, path: string) =>
    ({ id, protocol: 'chat', base: base(path), models, local: false, leased: true }) as const
  const grant = (id: string) => ({ id, hash: hashOf(id), provider: id, named: false })
  const talk = [{ role: 'user', content: 'go' }]
  const direct = (path: string) =>
    ask(base(`${path}/chat/completions`), { model: 'm', stream: true, messages: talk }, '"content":"word')
  const over = async (id: string) => {
    send({
      news: 'table',
      table: {
        providers: [provider('fast', ''), provider('paced', '/paced')],
        grants: [{ ...grant(id), hash: hashOf(BEARER) }],
      },
    })
    return ask(translator, { model: `${id}/m`, max_tokens: 9, stream: true, messages: talk }, '"text":"word')
  }
  // Loads the packages.
  await over('fast')
  const firsts = await inTurns(
    {
      direct: async () => (await direct('')).first,
      translator: async () => (await over('fast')).first,
    },
    ROUNDS,
  )
  const [alone, later] = [median(firsts.direct), median(firsts.translator)]
  print('first delta, direct', ms(alone))
  print('first delta, translator', ms(later))
  verdict('translator: first delta later than direct', later - alone, { most: 10, as: ms })
  const paced = [await direct('/paced'), await over('paced')] as const
  const rates = paced.map(({ all, deltas }) => (deltas * 1000) / all)
  print('deltas a second, direct', rates[0]!.toFixed(0), `${paced[0].deltas} deltas`)
  print('deltas a second, translator', rates[1]!.toFixed(0), `${paced[1].deltas} deltas`)
  verdict('translator: deltas a second, of those of the server', rates[1]! / rates[0]!, {
    least: 0.95,
    as: share => `${(share * 100).toFixed(0)} %`,
  })
  child.kill()
  server.kill()
}

if (process.argv[2] === SERVE) serve()
else await measure()
