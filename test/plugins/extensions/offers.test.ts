import t from 'tap'
import { RunningToolCalls } from '../../../plugins/extensions/backend/tool-calls.js'
import { toolOperations } from '../../../plugins/extensions/backend/registrations.js'
import { callExtensionTool } from '../../../plugins/extensions/backend/tools.js'
import type { ExtensionToolEvent } from '../../../plugins/extensions/contract.js'
import { ManifestEntries } from '../../../sdk/node/extension/entries.js'
import { walled } from '../../attack/support.js'
import { extensionDaemon } from '../../support/extensions/world.js'
import { exactly } from '../../support/lists.js'
import { modelServer } from '../../support/servers/model-server.js'
import { framesOf } from '../../support/turns.js'

const ID = 'acme.prints'
const SERVER = `export const activate = host => {
  host.tools.handle('print', async ({ pages }, { offer, pay }) => {
    const run = await offer({
      slug: 'print', name: 'Print', description: 'Prints on paper.', creditsPerRun: pages,
      request: pages + ' pages', why: 'The report is to be signed.', publisher: 'somebody.else',
    })
    if (!run) {
      const { ok, text } = await pay({ url: 'https://127.0.0.1:1/', why: 'Paper.' })
      return { text: 'nothing was printed, paid: ' + ok + ' ' + text, error: true }
    }
    run.status('printing')
    run.result({ pages })
    run.receipt({ outcome: 'ok', credits: pages, remaining: 7 })
    run.status('too late')
    return { text: 'printed' }
  })
}`

t.test(
  'a tool of an extension offers a service: a yes allows one run, which is shown with its receipt',
  walled(),
  async t => {
    // It waits for a person far longer than a call may take.
    const tool = { name: 'print', title: 'Print', description: 'Prints.', input: { type: 'object' }, timeoutMs: 1000 }
    let asked = 0
    const server = await modelServer(t, 'openai', ({ text }) =>
      text
        ? ++asked % 2 === 1
          ? { calls: [{ name: 'acme_prints__print', input: { pages: 3 } }] }
          : { text: ['Done.'] }
        : { status: 200, body: '{"data":[{"id":"m"}]}' },
    )
    const { client, run } = await extensionDaemon(t, {
      groups: ['agent', 'agents', 'settings'],
      files: { 'README.md': '# work\n' },
      fakes: {
        'endpoints.choices': () => ({
          endpoints: [
            {
              ...{ id: 'local', label: 'Local', default: 'm', ready: true },
              models: [{ id: 'm', label: 'M', efforts: [], badges: [] }],
            },
          ],
        }),
        'endpoints.target': () => server.target(),
      },
    })
    await run(ID, {
      manifest: { contributes: { tools: [tool] }, permissions: { sandbox: ['net:127.0.0.1:1'] } },
      server: SERVER,
    })
    const turn = async (conversationId: string, approve: boolean, waitMs: number) => {
      const { run } = await client.call('POST /agent', {
        ...{ conversationId, prompt: 'go', agent: 'endpoint/local', model: 'm', permissionMode: 'bypassPermissions' },
      })
      const watched = framesOf(client, conversationId, { run })
      const card = await watched.until(({ kind }) => kind === 'service_offer')
      await new Promise(resolve => setTimeout(resolve, waitMs))
      await client.call('POST /agent/reply', { kind: 'service_offer', requestId: card.requestId, approve })
      return { card, frames: (await watched.all()).map(({ event }) => event) }
    }

    const { card, frames } = await turn('yes', true, 1500)
    t.match(card, {
      offer: {
        ...{ slug: 'print', name: 'Print', creditsPerRun: 3, request: '3 pages', why: 'The report is to be signed.' },
        publisher: ID,
      },
    })
    const { requestId } = card
    t.match(
      frames.filter(({ kind }) => kind === 'service_event' || kind === 'service_receipt'),
      exactly(
        { kind: 'service_event', requestId, event: { event: 'status', text: 'printing' } },
        { kind: 'service_event', requestId, event: { event: 'result', data: { pages: 3 } } },
        { kind: 'service_receipt', requestId, outcome: 'ok', credits: 3, remaining: 7 },
      ),
    )
    t.match(JSON.stringify(frames), /"printed"/)

    const refused = (await turn('no', false, 0)).frames
    t.match(JSON.stringify(refused), /nothing was printed, paid: false nothing is listening on port 1 in the network/)
    t.notOk(refused.some(({ kind }) => kind === 'service_event' || kind === 'service_receipt'))
  },
)

t.test('the time of a call stands still while one of its offers waits, and what it shows is limited', async t => {
  const calls = new RunningToolCalls()
  const shown: ExtensionToolEvent[] = []
  const waits: boolean[] = []
  const call = calls.begin(
    ID,
    event => shown.push(event),
    on => waits.push(on),
  )
  const terms = { slug: 'print', name: 'Print', description: 'Prints.', creditsPerRun: 1, request: 'A page' }
  const offered = [1, 2, 3].map(() => calls.offer({ id: ID }, call, terms))
  const ids = shown.flatMap(event => (event.kind === 'offer' ? event.id : []))
  calls.answer(ids[0]!, true)
  t.equal(await offered[0], ids[0])
  t.same(waits, [true, true, true], 'two offers are still open')
  calls.answer(ids[1]!, false)
  calls.answer(ids[2]!, true)
  t.same(await Promise.all(offered), [ids[0], undefined, ids[2]])
  t.same(waits, [true, true, true, false, false])

  const show = (event: Parameters<RunningToolCalls['served']>[3]) => calls.served(ID, call, ids[0]!, event)
  t.throws(() => show({ event: 'result', data: 'x'.repeat(300_000) }), /^data: expected at most/)
  for (let step = 1; step < 500; step++) show({ event: 'status', text: 'printing' })
  t.throws(() => show({ event: 'status', text: 'too much' }), /at most 500 steps/)
  show({ event: 'receipt', outcome: 'ok', credits: 1 })
  t.match(shown.at(-1), { kind: 'served', event: { event: 'receipt' } }, 'what it cost is always shown')
  const last = calls.offer({ id: ID }, call, terms)
  calls.end(call)
  t.equal(await last, undefined)
  t.equal(waits.at(-1), true, 'no clock starts for a call that is over')
})

t.test('a payment waits for the turn as an offer does, and only to hosts of the manifest, without secrets', async t => {
  const calls = new RunningToolCalls()
  const shown: ExtensionToolEvent[] = []
  const waits: boolean[] = []
  const call = calls.begin(
    ID,
    event => shown.push(event),
    on => waits.push(on),
  )
  const entries = new ManifestEntries(ID, { sandbox: ['net:shop.example.org'] })
  const { 'tools.pay': pay } = toolOperations({ extension: { id: ID } } as never, calls, entries)
  const ask = async (url: string, more: object = {}) =>
    pay({ call, payment: { url, why: 'So.', ...more } }, new AbortController().signal)
  for (const [url, more, message] of [
    ['https://other.example.org/', {}, /other\.example\.org/],
    ['http://shop.example.org/', {}, /https/],
    ['https://shop.example.org/', { headers: { a: '{{secret:KEY}}' } }, /secrets/],
    ['https://shop.example.org/{{ secret:KEY }}', {}, /secrets/],
  ] as const)
    await t.rejects(ask(url, more), { message }, `${url} ${JSON.stringify(more)}`)
  t.same([shown, waits], [[], []])
  const paid = ask('https://shop.example.org/a')
  t.match(shown, exactly({ kind: 'pay', nth: 1, payment: { url: 'https://shop.example.org/a', why: 'So.' } }))
  calls.answerPayment((shown[0] as { id: string }).id, { ok: true, text: 'paid' })
  t.same([await paid, waits], [{ ok: true, text: 'paid' }, [true, false]])
  const last = ask('https://shop.example.org/b')
  calls.end(call)
  t.match(await last, { ok: false, text: /over/ })
})

const TERMS = { slug: 'print', name: 'Print', description: 'Prints.', creditsPerRun: 1, request: 'a page' }

t.test('a call of a tool whose backend does not start is over', async t => {
  const calls = new RunningToolCalls()
  const contributes = { tools: [{ name: 'print', title: 'P', description: 'P', input: {} }] }
  const backend = {
    extension: { id: ID, manifest: { contributes } },
    tools: new Set(['print']),
    running: async () => Promise.reject(new Error('it does not start')),
  }
  const deps = { backends: { of: () => backend, all: [] }, records: { refused: () => undefined }, calls }
  const asked = { server: `extension:${ID}`, name: 'print', input: {}, conversationId: 'c', run: 'r' }
  const called = callExtensionTool(deps as never, asked, { signal: new AbortController().signal })
  await t.rejects(called.next(), { message: /does not start/ })
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error('it still runs')), 1_000).unref())
  await t.rejects(Promise.race([calls.offer({ id: ID }, 1, TERMS), late]), { message: /runs no call 1/ })
})
