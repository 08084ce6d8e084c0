import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { folderOf, makeWorkspace } from './support/daemon.js'
import { project, shell, shownIn } from './support/browser/page.js'
import { agentGuides, guides } from './support/guides.js'

t.setTimeout(600_000)

/** A commit of a turn has another id each time. */
const withoutCommits = (text: string): string => text.replace(/\b[0-9a-f]{40}\b/g, 'COMMIT')

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
      if (prints !== undefined)
        t.equal(withoutCommits(out), withoutCommits(prints), `${path}: ${command}: what the page shows`)
    }
  }
  await t.test('every command that the text of a page names has a help, with its options', async t => {
    const named = [...guides, ...agentGuides].flatMap(({ path, text }) =>
      namedIn(text).map(command => ({ path, ...command })),
    )
    t.ok(named.length > 75, `${named.length} commands`)
    const helps = new Map<string, string>()
    for (const { path, command, words, options } of named) {
      if (!helps.has(words)) {
        const { code, out } = await run(`npx sandbox ${words} --help`)
        t.equal(code, 0, `${path}: ${command}\n${out}`)
        helps.set(words, out)
      }
      const help = helps.get(words)!
      for (const option of options)
        t.ok(help.includes(`  ${option}`) || help.includes(`${option} `), `${path}: ${command}`)
    }
  })
})

/** Calls of a group are verbs of two words, and words in small letters after other verbs are their arguments. */
const GROUPS = new Set(globSync('manifests/*.json', { cwd: project }).map(file => basename(file, '.json')))

/** The commands in the text of a page, with the words of their verb and their long options. */
const namedIn = (page: string): { command: string; words: string; options: string[] }[] =>
  [...page.replace(/^```[^]*?^```/gm, '').matchAll(/`(?:npx )?sandbox ([a-z][^`]*)`/g)].map(([, text = '']) => {
    const command = text.replaceAll(/\s+/g, ' ')
    const [verb = '', next = ''] = command.split(' ')
    const words = GROUPS.has(verb) && /^[a-z][a-z-]+$/.test(next) ? `${verb} ${next}` : verb
    const options = [...command.matchAll(/(?<=\s)--[a-z][a-z-]*/g)].map(([option]) => option)
    return { command, words, options: options.filter(option => option !== '--help') }
  })
