import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { daemonWith, root } from '../../support/daemon.js'
import { until } from '../../support/browser/browser.js'
import { walled } from '../support.js'

const PLANT =
  'echo "touch $HOME/ran" > "$HOME/.profile"; for at in "$HOME" /tmp "$XDG_CACHE_HOME" "$CARGO_HOME"; do '
  + 'mkdir -p "$at"; echo planted > "$at/planted"; done'
const GROUPS = ['automations', 'agent', 'agents', 'settings', 'workspace', 'panels', 'system', 'usage', 'activity']

t.test('only what a person types runs in the home folder of their terminals', t => {
  const users = globSync('{plugins,sdk/node,sdk/cli,kernel}/**/*.ts', { cwd: join(root, '..') }).filter(file =>
    /homeOfPeople\(/.test(readFileSync(join(root, '..', file), 'utf8')),
  )
  t.same(users.sort(), ['plugins/system/terminals/shell.ts', 'sdk/cli/verbs/wall.ts'])
  t.end()
})

t.test(
  'what a guard or an app of the workspace leaves in its home and caches is found in no terminal',
  walled(),
  async t => {
    const daemon = await daemonWith(t, GROUPS, {
      files: { 'package.json': JSON.stringify({ scripts: { dev: PLANT } }), 'plant.sh': PLANT },
    })
    const { client, data } = daemon
    const trigger = { kind: 'event' } as const
    const tried = await client.call('POST /automations/preview', { trigger, guard: 'sh plant.sh', runGuard: true })
    t.match(JSON.stringify(tried), /"pass":true/)
    const home = (name: string) => join(data, 'homes', name)
    for (const left of [join(home('work'), 'home/planted'), join(data, 'caches-work/cargo/planted')])
      t.ok(existsSync(left), left)
    const { name } = await client.call('POST /system/terminals', {
      command:
        '(ls -A "$HOME" /tmp "$XDG_CACHE_HOME" "$CARGO_HOME"; cat "$HOME/.profile"; echo over) > "$HOME/seen" 2>&1',
    })
    t.ok(name)
    const seen = join(home('people'), 'home/seen')
    await until(() => existsSync(seen) && /over/.test(readFileSync(seen, 'utf8')))
    t.notMatch(readFileSync(seen, 'utf8'), /planted|touch/)
  },
)
