import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { answersOf, shellTurn, walled } from '../../attack/support.js'
import { until } from '../../support/browser/browser.js'
import { joined } from '../../support/joined.js'
import { davServer, unusedPort, withMounts } from '../../support/servers/share-servers.js'
import { framesOf } from '../../support/turns.js'
import { addDisk, diskIn, disksWorld, mountDisk } from './support.js'

t.test(
  'turns see the shares that their persona has, and a tunnel that comes up mounts what failed',
  { ...walled(), ...withMounts('rclone') },
  async t => {
    const world = await disksWorld(t, ['system', 'areas', 'agent', 'agents', 'settings', 'skills', 'personas'])
    const { daemon, mounts, folder } = world
    const { client } = daemon
    const shared = folder('shared')
    writeFileSync(join(shared, 'hello.txt'), 'from far away\n')
    const dav = await davServer(t, shared)
    await addDisk(client, 'nas', { provider: 'webdav', url: dav.url, cache: 'off' })
    await addDisk(client, 'kept', { provider: 'webdav', url: dav.url, cache: 'off', readOnly: 'on' })
    const file = (id: string) => join(mounts, id, 'hello.txt')
    const look = (conversation: string, more: object = {}) =>
      shellTurn(
        client,
        conversation,
        [`cat ${file('nas')}`, `cat ${file('kept')}`, `echo new > ${join(mounts, 'kept', 'new.txt')} && echo wrote`],
        more,
      )

    await t.test('a share that is not mounted is not shown', async t => {
      const [nas] = await look('before')
      t.notMatch(nas, /from far away/)
    })
    await mountDisk(client, 'nas')
    await mountDisk(client, 'kept')
    await t.test('a turn without a persona sees each, as it is mounted', async t => {
      const [nas, kept, wrote] = await look('anybody')
      t.match(nas, /from far away/)
      t.match(kept, /from far away/)
      t.notMatch(wrote, /^wrote/m)
      const [written] = await shellTurn(client, 'writes', [
        `echo by hand > ${join(mounts, 'nas', 'w.txt')} && echo wrote`,
      ])
      t.match(written, /wrote/)
      await until(() => readFileSync(join(shared, 'w.txt'), 'utf8') === 'by hand\n')
    })
    await t.test('a persona sees those of its card alone', async t => {
      await client.call('POST /personas', { id: 'nobody', label: 'Nobody', capabilities: [] })
      await client.call('POST /personas', { id: 'keeper', label: 'Keeper', capabilities: ['kept'] })
      await client.call('POST /personas', {
        ...{ id: 'reader', label: 'Reader', capabilities: ['nas'], powers: { files: 'read' } },
      })
      const [read, wrote] = await shellTurn(
        client,
        'reads',
        [`cat ${file('nas')}`, `echo theirs > ${join(mounts, 'nas', 'theirs.txt')} && echo wrote`],
        { actsAs: 'reader' },
      )
      t.match(read, /from far away/)
      t.notMatch(wrote, /^wrote/m)
      for (const seen of await look('nobody', { actsAs: 'nobody' })) t.notMatch(seen, /from far away|^wrote/m)
      const [nas, kept] = await look('keeper', { actsAs: 'keeper' })
      t.notMatch(nas, /from far away/)
      t.match(kept, /from far away/)
    })

    await t.test(
      'who may not land only reads, and a turn that is limited or woken has those of its persona',
      async t => {
        const writes = `echo theirs > ${join(mounts, 'nas', 'theirs.txt')} && echo wrote`
        const asked = [`cat ${file('nas')}`, `cat ${file('kept')}`, writes]
        const token = await daemon.token('drive')
        const [nas, , wrote] = await shellTurn(token.client, 'waits', asked)
        t.match(nas, /from far away/)
        t.notMatch(wrote, /^wrote/m)
        mkdirSync(join(daemon.workspace, 'docs'))
        await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
        const ann = await joined(daemon, 'ann', 'collaborator', ['docs'])
        for (const seen of await shellTurn(ann.client, 'limited', asked, { startIn: 'docs' }))
          t.notMatch(seen, /from far away|^wrote/m)
        for (const seen of await shellTurn(client, 'woken', asked, { outsideWake: 'webhook' }))
          t.notMatch(seen, /from far away|^wrote/m)
        const [, kept] = await shellTurn(client, 'keeps', asked, { outsideWake: 'webhook', actsAs: 'keeper' })
        t.match(kept, /from far away/)
        t.notOk(readdirSync(shared).includes('theirs.txt'))
      },
    )

    await t.test('a share whose server hangs is no longer shown, and holds nothing up', async t => {
      const carrier = readdirSync('/proc').find(pid => {
        if (!/^\d+$/.test(pid)) return false
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
        return words.includes('mount') && words.includes(join(mounts, 'nas'))
      })
      await client.call('POST /agent', {
        conversationId: 'hangs',
        prompt: ['run echo first', 'ask Go on?', '| yes: on', 'run echo then', 'run echo then'].join('\n'),
      })
      const watched = framesOf(client, 'hangs')
      const { requestId } = await watched.until(({ kind }) => kind === 'question')
      process.kill(Number(carrier), 'SIGSTOP')
      try {
        await new Promise(resolve => setTimeout(resolve, 1500))
        await client.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Go on?': 'yes' } })
        const frames = (await watched.all()).map(({ event }) => event)
        t.same(
          answersOf(frames).map(({ text }) => text),
          ['first', 'then', 'then'],
        )
      } finally {
        process.kill(Number(carrier), 'SIGCONT')
      }
    })

    await t.test('what failed is mounted again when a tunnel comes up, unless it is mounted by hand', async t => {
      const port = await unusedPort()
      const url = `http://127.0.0.1:${port}`
      for (const [id, autoMount] of [
        ['office', 'on'],
        ['byhand', 'off'],
      ] as const) {
        await addDisk(client, id, { provider: 'webdav', url, cache: 'off', autoMount }).catch(() => [])
        const { capabilities } = await client.call('GET /capabilities')
        t.ok(
          capabilities.some(one => one.id === id),
          `${id} is recorded`,
        )
        await t.rejects(mountDisk(client, id))
        t.equal((await diskIn(client, id)).state, 'failed')
      }
      await davServer(t, shared, { port })
      daemon.kernel.events.emit('vpn.connected', { id: 'tunnel' })
      await until(async () => (await diskIn(client, 'office')).state === 'mounted')
      t.equal((await diskIn(client, 'byhand')).state, 'failed')
      t.match(readFileSync(file('office'), 'utf8'), /from far away/)
    })
  },
)
