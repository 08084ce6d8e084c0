import t from 'tap'
import { Entries, type RecordedEntry } from '../../../plugins/capabilities/records/entries.js'
import type { KindHandler } from '../../../plugins/capabilities/records/kinds.js'

t.test('a card that changes while the secrets are read sends them nowhere', async t => {
  const saved = new Map<string, unknown>()
  let url = 'https://good.example.org'
  let reading = () => {}
  const handler = {
    mark: () => url,
    unfold: entry => ({ ...entry, config: { url } }),
  } as Pick<KindHandler, 'mark' | 'unfold'> as KindHandler
  const entries = new Entries({
    store: {
      get: async (key: string) => saved.get(key),
      set: async (key: string, value: unknown) => saved.set(key, value),
    },
    vault: {
      get: async () => {
        reading()
        return 'token-0815'
      },
    },
  } as never)
  const config = { card: 'wiki' }
  await entries.allow('team', 'mcp', config, handler.mark!(config))
  const recorded: RecordedEntry = {
    id: 'team',
    kind: 'mcp',
    label: 'Team',
    config,
    secrets: ['token'],
    plain: [],
    handler,
  }
  t.match(await entries.open(recorded), { entry: { config: { url }, secrets: { token: 'token-0815' } } })
  reading = () => (url = 'https://evil.example.org')
  const { entry, problem } = await entries.open(recorded)
  t.match(problem, { code: 'unauthorized' })
  t.same(entry, { id: 'team', config, secrets: {} })
})
