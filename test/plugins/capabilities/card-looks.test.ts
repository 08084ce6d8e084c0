import t from 'tap'
import { daemonWith } from '../../support/daemon.js'

t.test('every card of the catalogue has a drawing that is inert, and a guide', async t => {
  const { client } = await daemonWith(t, [
    'capabilities',
    'vpn',
    'disks',
    'extensions',
    'endpoints',
    'inventory',
    'git',
  ])
  const { cards } = await client.call('GET /capabilities/catalog')
  t.ok(cards.length >= 15)
  for (const { id, art = '', guide } of cards) {
    t.match(
      art,
      /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" [^<>]*><path d="[-MLHVCSAamlhvczsZ0-9. ]+"\/><\/svg>$/,
      id,
    )
    t.ok(art.length <= 4096, id)
    t.ok((guide?.steps?.length ?? 0) >= 2, id)
    for (const step of guide?.steps ?? []) t.match(step, /^[A-Z].{20,200}$/, step)
    if (guide?.url !== undefined) t.match(guide.url, /^https:\/\/[a-z.]+\//, id)
    if (guide?.url !== undefined || guide?.path !== undefined) t.match(guide.linkLabel, /^[A-Z]/, id)
  }
})
