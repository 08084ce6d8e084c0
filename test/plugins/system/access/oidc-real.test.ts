import t from 'tap'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { startRealIssuer } from '../../../support/servers/real-issuer.js'
import { ask, bearer, nonceOf, present } from './sign-in-support.js'

t.test('a person signs in through the pages of a real provider, with a code and PKCE', async t => {
  const issuer = await startRealIssuer(t)
  const daemon = await daemonWith(t, ['system'], { deployment: { identity: { providers: [issuer.provider] } } })
  const { url } = daemon
  const token = await issuer.signIn('ada@example.org', await nonceOf(url))
  const { status, body } = await present(url, token, { device: 'a browser' })
  t.match(
    [status, body],
    exactly(200, { email: 'ada@example.org', role: 'owner', name: 'Known as ada', renewed: false }),
  )
  t.match((await ask(url, 'GET /info', undefined, bearer(String(body.token)))).body.me, {
    actor: 'ada@example.org',
    role: 'owner',
  })
  t.equal((await present(url, token)).status, 401, 'once')
  t.equal(
    (await present(url, await issuer.signIn('ada@example.org', 'made-up'))).status,
    401,
    'only with a nonce of the daemon',
  )
  t.equal(
    (await present(url, await issuer.signIn('bob@example.org', await nonceOf(url)))).status,
    403,
    'a person without a role is refused',
  )

  await issuer.rotate()
  t.match(await present(url, await issuer.signIn('ada@example.org', await nonceOf(url))), {
    status: 200,
    body: { role: 'owner' },
  })
  const other = { ...issuer.provider, audience: ['another-client'] }
  await daemon.stop()
  const { workspace, data } = daemon
  const next = await daemonWith(t, ['system'], { workspace, data, deployment: { identity: { providers: [other] } } })
  t.match(await present(next.url, await issuer.signIn('ada@example.org', await nonceOf(next.url))), {
    status: 401,
    body: { message: /audience/ },
  })
})
