import { execFileSync } from 'node:child_process'
import t from 'tap'
import { writeExtension } from '../plugins/extensions/support.js'
import { daemonOf } from './network/user-daemon.js'
import { walled } from './support.js'
import { USERS } from './users.js'

/** Publishers whose own headers a server between the daemon and a client, or the browser, would act on. */
const PUBLISHERS: { readonly [publisher: string]: readonly string[] } = {
  accel: ['x-accel-redirect', 'x-accel-buffering', 'X-Accel-Charset'],
  sendfile: ['x-sendfile-type', 'x-sendfile-root'],
  lighttpd: ['x-lighttpd-send-file', 'x-lighttpd-send-tempfile'],
  litespeed: ['x-litespeed-location', 'x-litespeed-cache-control'],
  reproxy: ['x-reproxy-url', 'x-reproxy-file'],
  envoy: ['x-envoy-upstream-rq-timeout-ms', 'x-envoy-degraded'],
  content: ['x-content-security-policy', 'x-content-type-options'],
  frame: ['x-frame-options'],
  dns: ['x-dns-prefetch-control'],
  forwarded: ['x-forwarded-for', 'x-forwarded-host'],
  eve: [],
}
/** Headers of no publisher that must not pass. */
const ALWAYS = [
  ...['set-cookie', 'location', 'refresh', 'link', 'access-control-allow-origin', 'access-control-allow-credentials'],
  ...['clear-site-data', 'service-worker-allowed', 'strict-transport-security', 'www-authenticate', 'alt-svc', 'nel'],
  ...['report-to', 'reporting-endpoints', 'sourcemap', 'x-sandbox-control', 'upgrade', 'x-frame-options'],
  ...['timing-allow-origin', 'cross-origin-resource-policy', 'permissions-policy', 'speculation-rules'],
]

const SERVER = (headers: object) => `export const activate = host => {
  host.routes.handle('GET /page', {}, () => ({
    status: 302, headers: ${JSON.stringify(headers)}, body: Buffer.from('<script>owned</script>'),
  }))
}`

for (const [user, uid] of USERS)
  t.test(`${user}: no header of an extension's answer is for anybody but its client`, walled(), async t => {
    const { client, url, session, workspace } = await daemonOf(t, uid, { 'README.md': '# work\n' })
    const bare = await fetch(`${url}/x/eve.none/page`, { headers: { authorization: `Bearer ${session}` } })
    const own = new Map(bare.headers)
    for (const [publisher, hostile] of Object.entries(PUBLISHERS)) {
      const id = `${publisher}.page`
      const given = Object.fromEntries([
        ...[...ALWAYS, ...hostile].map(name => [name, 'hostile']),
        ...[
          ['content-type', 'text/html'],
          ['x-eve-mine', 'mine'],
          ['content-security-policy', 'default-src *'],
        ],
      ])
      writeExtension(
        { workspace },
        publisher,
        { publisher, name: 'page', server: 'server.js' },
        { 'server.js': SERVER(given) },
      )
      execFileSync('chown', ['-R', `${uid}:${uid}`, workspace])
      const pending = async () => (await client.call('GET /extensions')).pending.find(each => each.id === id)
      let found = await pending()
      for (const end = Date.now() + 20_000; !found && Date.now() < end; found = await pending())
        await new Promise(resolve => setTimeout(resolve, 50))
      await client.call('POST /extensions/{id}/approve', { id, digest: found!.digest })
      let answer: Response
      do {
        answer = await fetch(`${url}/x/${id}/page`, {
          headers: { authorization: `Bearer ${session}` },
          redirect: 'manual',
        })
        await answer.arrayBuffer()
      } while (answer.status === 503 || answer.status === 404)
      t.same(
        [...answer.headers].filter(([name, value]) => value.includes('hostile') && own.get(name) !== value),
        [],
        publisher,
      )
      t.equal(answer.headers.get('content-security-policy'), 'sandbox')
      t.equal(answer.headers.get('x-content-type-options'), 'nosniff')
      t.equal(answer.headers.get('x-eve-mine'), publisher === 'eve' ? 'mine' : null, 'its own header passes')
      await client.call('POST /extensions/{id}/enabled', { id, enabled: false })
    }
  })
