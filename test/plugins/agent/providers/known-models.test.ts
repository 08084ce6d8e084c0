import { join } from 'node:path'
import t from 'tap'
import { modelWire } from '../../../../plugins/agent/providers/native/wire.js'
import { NO_PICTURES } from '../../../../plugins/agent/providers/native/prompt.js'
import { ProviderCatalogues } from '../../../../plugins/providers/catalogues.js'
import { shippedDefinitions } from '../../../../plugins/providers/definitions/shipped.js'
import { exactly } from '../../../support/lists.js'
import { modelServer } from '../../../support/servers/model-server.js'
import { nativeRun } from './native-support.js'

const EFFORTS = [undefined, 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', 'odd']
const THINKING = [undefined, true, false]

/** What a provider offers, without its own list, as turns see it. */
const catalogueOf = async (provider: string, ids: readonly string[]) => {
  const definition = structuredClone(shippedDefinitions().find(({ id }) => id === provider)!)
  definition.models.builtIn = ids.map(id => ({ id, label: id }))
  const files = { read: async () => undefined, write: async () => {} }
  const catalogues = new ProviderCatalogues({
    files,
    signal: new AbortController().signal,
    now: Date.now,
    changed: () => {},
  })
  return (await catalogues.known(definition)).models
}

const CLAUDES: { readonly [id: string]: readonly [thinking: string, efforts: number] } = {
  'claude-opus-5-5': ['always', 5],
  'claude-sonnet-5': ['adaptive', 5],
  'claude-opus-4-7': ['adaptive', 5],
  'claude-opus-4-6': ['adaptive', 4],
  'claude-sonnet-4-6-20260101': ['adaptive', 4],
  'claude-opus-4-5-20251101': ['budget', 3],
  'claude-sonnet-4-5': ['budget', 0],
  'claude-haiku-4-5': ['budget', 0],
  'claude-opus-4-1': ['budget', 0],
  'claude-sonnet-4-20250514': ['budget', 0],
  'claude-3-haiku-20240307': ['none', 0],
}
const GPTS = ['gpt-4.1', 'gpt-4.1-mini', 'gpt-4o', 'gpt-4o-mini', 'o3', 'o4-mini', 'gpt-5', 'gpt-5-mini']

t.test('what is known of a model is known of its dated forms, and not of its namesakes', async t => {
  const models = await catalogueOf('anthropic', Object.keys(CLAUDES))
  t.same(Object.fromEntries(models.map(({ id, thinking, efforts }) => [id, [thinking, efforts.length]])), CLAUDES)
  t.match(
    await catalogueOf('openai', ['gpt-4.1-mini-2025-04-14', 'gpt-5.9-next']),
    exactly({ maxOutput: 32_768 }, { thinking: undefined }),
  )
})

t.test('no request asks a model for an effort or a form of thinking that it does not take', async t => {
  for (const [protocol, provider, ids] of [
    ['anthropic', 'anthropic', Object.keys(CLAUDES)],
    ['openai', 'openai', GPTS],
  ] as const) {
    const known = await catalogueOf(provider, ids)
    // One of a person's own, with the smallest answers that there are.
    const own = { id: 'own-1', label: 'Own', efforts: ['low', 'high'], badges: [], maxOutput: 4_096 }
    const models = [...known, { ...own, thinking: protocol === 'openai' ? ('effort' as const) : ('budget' as const) }]
    const server = await modelServer(t, protocol, [{ text: ['ok'] }])
    for (const row of models)
      for (const effort of EFFORTS)
        for (const thinking of THINKING) {
          const settings = { ...(effort !== undefined && { effort }), ...(thinking !== undefined && { thinking }) }
          const { model, options } = await modelWire(server.target({ models }), row.id, settings)
          const { stream } = await model.doStream({
            ...options,
            prompt: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }],
          })
          await stream.cancel()
          const body = server.body(-1) as { [field: string]: unknown }
          const asked = { id: row.id, effort, thinking }
          const sent = (
            protocol === 'openai' ? body.reasoning_effort : (body.output_config as { effort?: string })?.effort
          ) as string | undefined
          const fits = sent === undefined || row.efforts.includes(sent)
          const kept = effort === undefined || !row.efforts.includes(effort) || sent === effort
          const form = (body.thinking as { type?: string } | undefined)?.type
          const forms = {
            none: [undefined],
            budget: [undefined, 'enabled', 'disabled'],
            adaptive: [undefined, 'adaptive', 'disabled'],
            always: [undefined, 'adaptive'],
            effort: [undefined],
          }
          const thinks = protocol === 'openai' || forms[row.thinking!].includes(form as never)
          const budget = (body.thinking as { budget_tokens?: number } | undefined)?.budget_tokens ?? 0
          const most = Number(body.max_tokens)
          const outputs = protocol === 'openai' || (most <= row.maxOutput! && budget < most)
          if (!fits || !kept || !thinks || !outputs) t.fail(JSON.stringify({ asked, sent, form, max: body.max_tokens }))
        }
    t.equal(server.requests.length, models.length * EFFORTS.length * THINKING.length)
  }
})

t.test(
  'a request to Anthropic has four cache marks: instructions, words, what was sent before, and the end',
  async t => {
    const read = { calls: [{ name: 'Read', input: { path: 'a' } }] }
    const server = await modelServer(t, 'anthropic', [read, read, { text: ['ok'] }])
    await nativeRun(server.target())
    const marked = (nth: number): unknown[] => {
      const { system = [], messages = [] } = server.body(nth)
      const of = (value: unknown) => JSON.stringify(value).includes('cache_control')
      return [system.some(of), messages.flatMap(({ content }, at) => (of(content) ? [at] : []))]
    }
    t.same(
      [marked(0), marked(1), marked(2)],
      [
        [true, [0]],
        [true, [0, 2]],
        [true, [0, 2, 4]],
      ],
    )
  },
)

t.test('a model that is known to see no pictures gets none, and people are told', async t => {
  const server = await modelServer(t, 'openai', [{ text: ['ok'] }])
  const models = [{ id: 'm', label: 'M', efforts: [], badges: [], pictures: false }]
  const file = join(t.testdir({ 'a.png': Buffer.from('89504e470d0a1a0a', 'hex') }), 'a.png')
  const attachments = [{ path: 'a.png', absolute: file, mime: 'image/png', bytes: 8 }]
  const world = await nativeRun(server.target({ models }), { request: { attachments } })
  t.same(world.find('notice'), [NO_PICTURES])
  t.notMatch(server.told(0), /image_url/)
  const sees = await modelServer(t, 'openai', [{ text: ['ok'] }])
  await nativeRun(sees.target(), { request: { attachments } })
  t.match(sees.told(0), /image_url/)
})
