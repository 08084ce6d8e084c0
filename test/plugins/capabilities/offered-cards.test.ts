import t from 'tap'
import { filledTemplate, OfferedCards, unfolded } from '../../../plugins/capabilities/cards/offered-cards.js'
import type { ExtensionCard } from '../../../plugins/extensions/contract.js'
import { exactly } from '../../support/lists.js'

const cardsOf = async (...cards: object[]): Promise<OfferedCards> => {
  const catalog = { name: 'Wiki', description: 'Pages.', category: 'knowledge' }
  const offered = cards.map(card => ({ extension: 'ada.cards', card: { catalog, ...card } as ExtensionCard }))
  const found = new OfferedCards({ serves: async () => true, call: async () => ({ cards: offered }) } as never)
  await found.refresh()
  return found
}

t.test('a card of an extension does not decide which calls ask a person', async t => {
  for (const field of [{ value: 'never' }, { default: 'never' }, { optional: true }]) {
    const cards = await cardsOf({
      ...{ id: 'every', kind: 'mcp', mcp: { transport: 'http', url: 'https://${host}/mcp' } },
      fields: [
        { key: 'host', label: 'Host' },
        { key: 'approve', label: 'Ask', ...field },
      ],
    })
    const config = { card: 'every', host: 'example.org' }
    const unfold = (more: object) => unfolded({ id: 'x', config: { ...config, ...more }, secrets: {} }, card).config
    const card = cards.brought('mcp', config)!
    t.same(unfold({}), { transport: 'http', url: 'https://example.org/mcp' }, JSON.stringify(field))
    t.match(unfold({ approve: 'never' }), { approve: 'never' }, 'a person does')
  }
})

t.test('a seed of one-time codes is a secret, whatever its card says', async t => {
  const cards = await cardsOf({
    ...{ id: 'wiki', kind: 'cli', env: {}, skill: 'wiki.md' },
    fields: [{ key: 'seed', label: 'Seed', totp: true }],
  })
  t.match(cards.cli('wiki')?.fields, exactly({ key: 'seed', secret: true }))
})

t.test('a template has the values of its fields and nothing else', async t => {
  t.equal(filledTemplate('${a}/${a:uri}/${b}/${constructor}', { a: 'x y' }), 'x y/x%20y//')
})
