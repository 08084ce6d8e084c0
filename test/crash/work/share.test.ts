import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { spawnDaemon, type RunningDaemon } from '../../support/daemon.js'
import { askPage, pathOfUrl } from '../../plugins/outbox/support.js'
import { runTurn } from '../../support/turns.js'
import { dies, whereIn, type Where } from '../failpoints/failpoints.js'

const ASKED = { conversationId: 'c', title: 'T', detail: 'messages' } as const

/** Shares a conversation that says `old`, and lets it say `new`. */
const begun = async ({ once: client }: Pick<RunningDaemon, 'once'>) => {
  await runTurn(client, 'c', 'say old')
  const share = await client.call('POST /share', ASKED)
  await runTurn(client, 'c', 'say new')
  return share
}

/** The newest words of each page, and how many snapshots are kept. */
const after = async (t: Test, where: Where) => {
  const { client, url } = await spawnDaemon(t, where)
  const { shares } = await client.call('GET /share', {})
  const pages: string[] = []
  for (const share of shares) {
    const { status, body } = await askPage(url, pathOfUrl(share.url))
    const html = body.toString()
    pages.push(status !== 200 || !html.endsWith('</html>\n') ? String(status) : html.includes('>new<') ? 'new' : 'old')
  }
  const folder = join(where.data, 'share/pages')
  return { pages, kept: readdirSync(folder).map(id => readdirSync(join(folder, id)).length) }
}

for (const [point, word] of [
  ['share.written:2', 'old'],
  ['share.kept:2', 'new'],
] as const)
  void t.test(
    `a page that is taken again is the old one or the new one if the daemon is killed at ${point}`,
    async t => {
      const where = whereIn(t)
      await dies(t, where, point, async daemon => {
        const { id } = await begun(daemon)
        await daemon.once.call('POST /share/update', { id })
      })
      t.same(await after(t, where), { pages: [word], kept: [1] })
    },
  )

void t.test('a page that was taken down is gone if the daemon is killed at share.removed', async t => {
  const where = whereIn(t)
  await dies(t, where, 'share.removed', async daemon => {
    const { id } = await begun(daemon)
    await daemon.once.call('POST /share/remove', { id })
  })
  t.same(await after(t, where), { pages: [], kept: [] })
})
