import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { spawnDaemon } from '../support/daemon.js'
import { dies, SKILLS_POINTS, whereIn } from './failpoints/failpoints.js'

const NAMES = Array.from({ length: 50 }, (_, at) => `skill-${at}`)

t.jobs = 2
for (const point of SKILLS_POINTS) {
  void t.test(`killed at ${point}, an import has added all skills or none`, async t => {
    const where = whereIn(t, {})
    for (const name of NAMES) {
      mkdirSync(join(where.workspace, 'packs', name), { recursive: true })
      writeFileSync(join(where.workspace, 'packs', name, 'SKILL.md'), 'Do it.\n')
    }
    await dies(t, where, point, ({ once }) =>
      once.call('POST /skills/import', { from: { kind: 'path', path: 'packs' } }),
    )
    const { client, terminate } = await spawnDaemon(t, where)
    const names = (await client.call('GET /skills')).filter(({ origin }) => origin === 'own').map(({ name }) => name)
    t.same(names.sort(), point === 'skills.import.staged' ? [] : NAMES.toSorted())
    t.same(
      readdirSync(join(where.workspace, '.sandbox/config/skills')).filter(name => name.startsWith('.')),
      [],
    )
    await terminate()
  })
}
