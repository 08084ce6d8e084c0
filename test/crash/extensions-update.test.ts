import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import t from 'tap'
import { folderOf, inGit, makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { committed } from '../support/servers/git-server.js'

const ID = 'ada.far'
const KILLS = 10

t.test(`killed at ${KILLS} moments of an update, one of the two versions runs, whole`, async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  const origin = join(where.workspace, 'far')
  mkdirSync(origin)
  inGit(origin, 'init', '-q')
  const versions = ['1.0.0', '2.0.0'].map(version => {
    const manifest = { publisher: 'ada', name: 'far', version, server: 'server.js' }
    writeFileSync(join(origin, 'intentic-extension.json'), JSON.stringify(manifest))
    const handler = `host.routes.handle('GET /version', {}, () => ({ body: '${version}' }))`
    writeFileSync(join(origin, 'server.js'), `export const activate = host => {\n  ${handler}\n}\n`)
    return { version, ref: committed(origin) }
  })
  const first = await spawnDaemon(t, where)
  const source = { url: 'far', ref: versions[0]!.ref }
  const { digest } = await first.client.call('POST /extensions/install/preview', source)
  for await (const _ of await first.client.call('POST /extensions/install', { ...source, digest }));
  const began = performance.now()
  await first.client.call('POST /extensions/{id}/update', { id: ID, ref: versions[1]!.ref })
  const takes = performance.now() - began
  let daemon = first
  const ended: { [version: string]: number } = {}
  for (let nth = 0; nth < KILLS; nth++) {
    const { extensions } = await daemon.client.call('GET /extensions')
    const before = extensions.find(({ id }) => id === ID)!.commit
    const target = versions.find(({ ref }) => ref !== before)!
    const delay = Math.round(((nth + 0.5) / KILLS) * takes * 1.5)
    const update = daemon.client.call('POST /extensions/{id}/update', { id: ID, ref: target.ref }).then(
      () => true,
      () => false,
    )
    await Promise.race([later(delay), update])
    const acknowledged = await Promise.race([update, Promise.resolve(false)])
    await daemon.kill9()
    daemon = await spawnDaemon(t, where)
    const list = await daemon.client.call('GET /extensions')
    const found = list.extensions.find(({ id }) => id === ID)!
    const version = versions.find(({ ref }) => ref === found.commit)!.version
    const told = `killed after ${delay} ms`
    t.same(list.invalid, [], told)
    t.equal(found.manifest.version, version, told)
    if (acknowledged) t.equal(found.commit, target.ref, 'an acknowledged update stays')
    const kept = [found.commit, found.previous?.ref].filter(each => each !== undefined)
    t.same(readdirSync(join(where.data, 'extensions/code', ID)).sort(), kept.sort(), told)
    const staging = join(where.data, 'extensions/staging')
    t.same(existsSync(staging) ? readdirSync(staging) : [], [], told)
    const headers = { authorization: `Bearer ${daemon.session}` }
    const answer = async () => (await fetch(`${daemon.url}/x/${ID}/version`, { headers })).json().catch(() => undefined)
    let says = await answer()
    for (const end = Date.now() + 10_000; typeof says !== 'string' && Date.now() < end; says = await answer())
      await later(20)
    t.equal(says, version, told)
    ended[version] = (ended[version] ?? 0) + 1
  }
  t.comment(`an update takes ${Math.round(takes)} ms; ended at ${JSON.stringify(ended)}`)
  await daemon.terminate()
})
