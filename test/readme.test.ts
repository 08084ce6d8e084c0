import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { folderOf, makeWorkspace } from './support/daemon.js'
import { project, shell, shownIn } from './support/browser/page.js'
import { guides } from './support/guides.js'

t.setTimeout(300_000)

t.test('every command of the README and the guides works as written, in the order of the pages', async t => {
  const state = folderOf(t)
  makeWorkspace(join(state, 'served'))
  const env: NodeJS.ProcessEnv = { ...process.env, XDG_STATE_HOME: state, SANDBOX_PORT: '0', NO_COLOR: '1' }
  for (const name of ['SANDBOX_URL', 'SANDBOX_TOKEN', 'SANDBOX_DATA', 'SANDBOX_WORKSPACE']) delete env[name]
  const { run, start } = shell(t, env)
  const shown = guides.flatMap(({ path, text }) => shownIn(text).map(each => ({ ...each, path })))
  t.ok(shown.length >= 90, `${shown.length} commands`)
  for (const { path, command, prints } of shown) {
    if (command === 'npm ci && npm test') {
      const ci = readFileSync(join(project, '.ci', 'run'), 'utf8')
      t.match(ci, /npm ci/, 'CI installs as the page says')
      t.match(ci, /npm test/, 'CI tests as the page says')
    } else if (command === 'npm ci && npm start') {
      const said = await start('npm start', /npm start -- --workspace/)
      env.SANDBOX_URL = /http:\/\/127\.0\.0\.1:\d+/.exec(said)![0]
      t.match(said, /\nlanded: 1 file is in the workspace/, 'the main job is shown, to the landing')
    } else if (command === 'npm start -- --workspace DIR') {
      const said = await start(command.replace('DIR', join(state, 'served')), /ready at/)
      t.notMatch(said, /demo/, 'a folder of yours is served and nothing runs')
    } else {
      // The demonstration asks a question; without a terminal here, another client answers it.
      const asks = command.includes('"/demo"')
      const running = run(
        `${command.replaceAll('http://127.0.0.1:8787', env.SANDBOX_URL!)}${asks ? ' --timeout 2m' : ''}`,
      )
      if (asks) while ((await run('npx sandbox answer first 1')).code !== 0) await delay(200)
      const { code, out } = await running
      t.equal(code, 0, `${path}: ${command}\n${out}`)
      if (prints !== undefined) t.equal(out, prints, `${path}: ${command}: what the page shows`)
    }
  }
})
