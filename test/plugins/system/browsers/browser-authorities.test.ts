import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { ConversationAuthority } from '../../../../plugins/agent/secrets/conversation-authority.js'
import { act, until, withChromium, withoutWindows } from '../../../support/browser/browser.js'
import { daemonWith } from '../../../support/daemon.js'
import { trustedAuthority } from '../../../support/servers/git-server.js'

withoutWindows(t)

t.test('the browser trusts the authorities that the deployment names, and no others', withChromium(), async t => {
  const asked: string[] = []
  const serverOf = async (authority: ConversationAuthority, name: string) => {
    const server = createServer(await authority.identityOf('127.0.0.1'), (_, answer) => {
      asked.push(name)
      answer.end(name)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return `https://127.0.0.1:${(server.address() as AddressInfo).port}/`
  }
  const daemon = await daemonWith(t, ['system'])
  const company = await trustedAuthority(t)
  const stranger = await ConversationAuthority.make()
  const [ours, theirs] = [await serverOf(company, 'company'), await serverOf(stranger, 'stranger')]
  await act(daemon, 'open', { url: theirs }).catch((error: Error) => error)
  await act(daemon, 'open', { url: ours })
  await until(() => asked.length > 0)
  t.same([...new Set(asked)], ['company'])
  const { programs } = await daemon.client.call('GET /info')
  t.match(
    programs.find(({ name }) => name === 'certutil'),
    { present: true, install: /libnss3-tools/ },
  )
  await daemon.client.call('DELETE /system/browsers/{name}', { name: 'web-a' })
  asked.length = 0
  delete process.env.SSL_CERT_FILE
  await act(daemon, 'open', { url: ours }).catch((error: Error) => error)
  await act(daemon, 'open', { url: theirs }).catch((error: Error) => error)
  t.same(asked, [], 'once it names none, the browser trusts none')
})
