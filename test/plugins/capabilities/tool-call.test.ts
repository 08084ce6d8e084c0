import t from 'tap'
import { callTool } from '../../../plugins/capabilities/servers/tool-call.js'

const ASKED = { conversationId: 'c', run: 'r', server: 'own', name: 'drip', input: {} }

/** The end of a call whose server reports progress and never answers; a person takes `asks` ms to answer it. */
const ended = async (silenceMs: number, everyMs: number, asks = 0) => {
  const config = { timeoutMs: silenceMs }
  const entry = { id: 'own', config, secrets: {} }
  let call: { ask(question: object): void; settled(): void } | undefined
  const client = {
    callTool: (_asked: object, { signal, onprogress }: { signal: AbortSignal; onprogress: (at: object) => void }) =>
      new Promise((_, failed) => {
        let progress = 0
        const timer = setInterval(() => onprogress({ progress: ++progress }), everyMs)
        signal.addEventListener('abort', () => {
          clearInterval(timer)
          failed(new Error('aborted'))
        })
        if (asks === 0) return
        call?.ask({ kind: 'asked' })
        setTimeout(() => call?.settled(), asks)
      }),
  }
  const sessions = {
    get: async () => ({ client, answered: () => false }),
    calling: (_conversation: string, _server: string, running: typeof call) => {
      call = running
      return () => {}
    },
  }
  const turns = { of: async () => ({ offers: [{ tool: { server: 'own', name: 'drip' }, entry }] }) }
  const events = []
  const began = performance.now()
  for await (const event of callTool({ turns, sessions } as never, ASKED as never, new AbortController().signal))
    events.push(event)
  return { last: events.at(-1), ms: performance.now() - began }
}

t.test('a call that reports progress for ever ends at 60 times its silence, and says so', async t => {
  const { last, ms } = await ended(40, 5)
  t.match(last, { ok: false, text: 'drip of own lasted 2.4 s and was cancelled' })
  t.ok(ms >= 2300, `${ms} ms`)
})

t.test('the time in which it waits for a person does not count', async t => {
  const { last, ms } = await ended(20, 5, 1500)
  t.match(last, { ok: false, text: 'drip of own lasted 1.2 s and was cancelled' })
  t.ok(ms >= 2600, `${ms} ms`)
})

t.test('one that is silent ends when it may not be silent any longer', async t => {
  t.match((await ended(100, 1000)).last, { ok: false, text: 'drip of own gave no sign for 0.1 s and was cancelled' })
})
