import t from 'tap'
import { daemonWith } from '../../support/daemon.js'

t.test('without a credential nothing is listed', async t => {
  const daemon = await daemonWith(t, ['routed'])
  t.equal((await fetch(`${daemon.url}/routed`)).status, 401)
})

t.test('a token of a scope that the manifest does not name lists nothing', async t => {
  const daemon = await daemonWith(t, ['routed'])
  for (const scope of ['editor'] as const) {
    const { token } = await daemon.token(scope)
    t.equal((await fetch(`${daemon.url}/routed`, { headers: { 'x-sandbox-control': token } })).status, 403, scope)
  }
})

t.test('a query that is too long is refused', async t => {
  const daemon = await daemonWith(t, ['routed'])
  t.equal((await daemon.fetch(`/routed?query=${'x'.repeat(101)}`)).status, 400)
})

t.test('the list is empty at first', async t => {
  const daemon = await daemonWith(t, ['routed'])
  t.same(await daemon.client.call('GET /routed', {}), { entries: [] })
})
