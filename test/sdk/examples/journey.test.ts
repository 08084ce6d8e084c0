import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ExtensionContributions } from '../../../plugins/extensions/contract.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { runs, walled } from '../../attack/support.js'
import { until, withChromium } from '../../support/browser/browser.js'
import { launchBrowser, ownerTab } from '../../support/browser/console.js'
import { folderOf, inGit, makeWorkspace, spawnDaemon, type RunningDaemon, type Support } from '../../support/daemon.js'
import { font } from '../../support/documents/font.js'
import { committed } from '../../support/servers/git-server.js'
import { modelServer } from '../../support/servers/model-server.js'
import { runTurn } from '../../support/turns.js'
import { automation, settled } from '../../support/automations.js'

const EXAMPLES = 'sdk/examples'
type Kind = keyof ExtensionContributions

/** What each example does with another setting: a turn, and what it shows then. */
const SETTINGS: {
  readonly [id: string]: readonly [settings: { [key: string]: string }, turn: [string, object], shows: RegExp]
} = {
  'examples.glossary': [{ file: 'docs/a.md' }, ['go', { agent: 'endpoint/local', model: 'm' }], /not found/],
  'examples.team-kit': [{ team: 'kitchen' }, [runs('team-hello'), { agent: 'script' }], /team kitchen writes/],
}

/** An agent program that says which plugins its session was opened with. */
const PROGRAM = `
import { createInterface } from 'node:readline'
import { readFileSync } from 'node:fs'
const send = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
let plugins = []
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize') send({ id, result: { protocolVersion: 1, agentCapabilities: {} } })
  else if (method === 'session/new') {
    plugins = params._meta?.claudeCode.options.plugins ?? []
    send({ id, result: { sessionId: 's' } })
  } else if (method === 'session/prompt') {
    const skills = plugins.map(({ path }) => readFileSync(path + '/skills/tracker/SKILL.md', 'utf8'))
    const text = skills.join() || 'no plugins'
    send({ method: 'session/update', params: { sessionId: 's', update:
      { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } } })
    send({ id, result: { stopReason: 'end_turn' } })
  }
}
`

t.test(
  'every kind of contribution has an example that is installed, used and removed',
  { ...withChromium(), ...walled() },
  async t => {
    const folder = folderOf(t)
    const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
    makeWorkspace(workspace)
    mkdirSync(join(workspace, 'design'))
    mkdirSync(join(workspace, 'docs'))
    const put = (path: string, text: string | Buffer) => writeFileSync(join(workspace, path), text)
    put('design/warm.gpl', 'GIMP Palette\nName: Warm\n#\n255 0 0 Tomato\n255 165 0 Orange\n')
    put('design/style.css', 'a { color: #336699 }\n')
    put('docs/glossary.md', '- **Turn**: the work that one message starts\n')
    put('docs/a.md', '- [ ] write it\n')
    put('bold.ttf', font({ 1: 'Groetesk', 4: 'Groetesk Bold' }))
    put('agent.mjs', PROGRAM)
    cpSync(EXAMPLES, join(workspace, 'extensions'), { recursive: true })
    inGit(join(workspace, 'extensions'), 'init', '-q')
    const ref = committed(join(workspace, 'extensions'))
    let asked = 0
    const model = await modelServer(t, 'openai', ({ text }) =>
      text
        ? ++asked % 2 === 1
          ? { calls: [{ name: 'examples_glossary__define', input: { term: 'turn' } }] }
          : { text: ['Done.'] }
        : { status: 200, body: '{"data":[{"id":"m"}]}' },
    )
    const daemon = await spawnDaemon(t, { workspace, data })
    const { client } = daemon
    const { baseUrl } = model.target()
    await client.call('POST /endpoints', { id: 'local', kind: 'server', protocol: 'openai', baseUrl })
    await connect(daemon, { id: 'program', kind: 'agent', config: { command: `node ${join(workspace, 'agent.mjs')}` } })
    const { socket } = JSON.parse(readFileSync(join(data, 'daemon.json'), 'utf8')) as { socket: string }
    const { page } = await ownerTab(await launchBrowser(t), { url: daemon.url, socket } as Support)
    const at = (place: string) => page.evaluate(`location.hash = ${JSON.stringify(place)}`)
    const frame = page.frameLocator('iframe')
    const said = async (prompt: string, options: object) =>
      JSON.stringify(await runTurn(client, `turn-${Math.floor(performance.now())}`, prompt, options))

    /** Uses what an example contributes; answers whether it is there. */
    const uses: { readonly [kind in Kind]: (t: Test, there: boolean, id: string) => Promise<unknown> } = {
      views: async (_, there) => {
        await at('#/x/examples.open-tasks/main')
        if (there) return frame.getByText('write it (docs/a.md:1)').waitFor()
        await page.getByRole('heading', { level: 1 }).waitFor()
        await page.locator('iframe').waitFor({ state: 'detached' })
      },
      viewers: async (_, there) => {
        await at('#/files/open/design%2Fwarm.gpl')
        await page.getByText('Name: Warm').waitFor()
        const link = page.getByRole('link', { name: 'Draw by palettes' })
        if (!there) return link.waitFor({ state: 'detached' })
        await link.click()
        return frame.getByText('Tomato').waitFor()
      },
      commands: async (t, there) => {
        await page.keyboard.press('Control+k')
        const palette = page.getByRole('dialog')
        await palette.getByRole('combobox').fill('count the colours')
        const option = page.getByRole('option', { name: 'Count the colours of this palette' })
        if (there) {
          await option.waitFor()
          await page.keyboard.press('Enter')
          return frame.getByText(/^\d+ colours$/).waitFor()
        }
        await page.keyboard.press('Escape')
        t.equal(await option.count(), 0)
      },
      sideViews: async (_, there) => {
        await at('#/files/open/design%2Fstyle.css')
        const panel = page.locator('summary', { hasText: 'Colours' })
        await page.getByRole('heading', { name: 'design/style.css' }).waitFor()
        if (!there) return panel.waitFor({ state: 'detached' })
        await panel.click()
        return frame.getByText('#336699').waitFor()
      },
      files: async (_, there) => {
        put('design/style.css', 'a { color: #abcdef }\n')
        if (there) return frame.getByText('#abcdef').waitFor()
        await page.locator('iframe').waitFor({ state: 'detached' })
      },
      documents: async (t, there) => {
        const text = await client.call('POST /workspace/derive', { path: 'bold.ttf' })
        t.match(text, there ? { title: 'Groetesk Bold', content: '- Family: Groetesk' } : { derivable: false })
      },
      tools: async (t, there) => {
        asked = 0
        const frames = await said('go', { agent: 'endpoint/local', model: 'm' })
        t.equal(/the work that one message starts/.test(frames), there, 'tools')
      },
      settings: async (t, there, id) => {
        const [settings, used, shows] = SETTINGS[id]!
        const set = () => client.call('POST /extensions/{id}/settings', { id, settings })
        if (!there) return t.match(await refusalOf(set), { status: 404 })
        await set()
        asked = 0
        t.match(await said(...used), shows)
      },
      bin: async (t, there) =>
        t.equal(/team \w+ writes/.test(await said(runs('team-hello'), { agent: 'script' })), there, 'bin'),
      environment: async (t, there) =>
        t.equal(
          /in style plain/.test(await said(runs('echo "in style $TEAM_STYLE"'), { agent: 'script' })),
          there,
          'variable',
        ),
      agent: async (t, there) =>
        t.equal(/Search before you file/.test(await said('go', { agent: 'agent/program' })), there, 'skill'),
      capabilities: async (t, there) => {
        const { cards } = await client.call('GET /capabilities/catalog')
        t.match(
          cards.find(({ id }) => id === 'tracker'),
          there ? { extension: 'examples.team-kit', art: /^<svg/, guide: { linkLabel: 'Make a token' } } : undefined,
        )
        const config = { provider: 'tracker', url: 'https://tracker.example.org', token: 'tracker-token-4711' }
        if (there) await connect(daemon, { id: 'ours', kind: 'cli', config })
        const turn = await said(runs('echo "at $TRACKER_URL_OURS"'), { agent: 'script' })
        t.equal(/at https:\/\/tracker\.example\.org/.test(turn), there, 'variable of the connection')
        t.equal(
          (await client.call('GET /capabilities')).capabilities.some(({ id }) => id === 'ours'),
          there,
        )
      },
      processes: async (t, there) => {
        const where = { id: 'examples.build-alerts', name: 'hook' }
        const start = client.call('POST /extensions/{id}/processes/{name}/start', where)
        if (!there) return t.match(await refusalOf(() => start), { status: 404 })
        await start
        t.match(await client.call('GET /extensions/{id}/processes/{name}', where), { running: true, port: Number })
      },
      automationTemplates: async (t, there) => {
        const { templates } = await client.call('GET /automations/catalog')
        t.equal(
          templates.some(({ id }) => id === 'explain'),
          there,
          'template',
        )
      },
      listener: async (t, there) => {
        const { sources } = await client.call('GET /automations/catalog')
        t.equal(
          sources.some(({ provider }) => provider === 'builds'),
          there,
          'source',
        )
        if (!there) return
        const trigger = { kind: 'listener', provider: 'builds', eventType: 'failed' } as const
        await client.call(
          'POST /automations',
          automation('explainer', { trigger, prompt: 'say explained', agent: 'script' }),
        )
        const where = { id: 'examples.build-alerts', name: 'hook' }
        const { port } = await client.call('GET /extensions/{id}/processes/{name}', where)
        const body = JSON.stringify({ id: 7, project: 'shop', state: 'failed', log: 'no such module' })
        await until(
          async () =>
            (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body }).catch(() => undefined))?.ok === true,
        )
        t.match((await settled(daemon, 'explainer', 1)).runs[0], { outcome: String })
      },
    }

    const contributing = readdirSync(EXAMPLES).flatMap(name => {
      const text = readFileSync(join(EXAMPLES, name, 'intentic-extension.json'), 'utf8')
      const { contributes } = JSON.parse(text) as { contributes?: ExtensionContributions }
      return contributes ? [{ name, kinds: Object.keys(contributes) as Kind[] }] : []
    })
    t.same(
      [...new Set(contributing.flatMap(({ kinds }) => kinds))].sort(),
      Object.keys(uses).sort(),
      'no kind is left out',
    )

    for (const { name, kinds } of contributing)
      await t.test(`${name}: ${kinds.join(', ')}`, async t => {
        const id = `examples.${name}`
        const source = { url: 'extensions', ref, path: name }
        const { digest } = await client.call('POST /extensions/install/preview', source)
        for await (const line of await client.call('POST /extensions/install', { ...source, digest }))
          if (line.kind === 'result') t.equal(line.id, id)
        const record = async () => (await client.call('GET /extensions')).extensions.find(each => each.id === id)
        await until(async () => ['running', undefined].includes((await record())?.backend?.state))
        t.same((await record())?.problems, [])
        const inOrder = Object.keys(uses).filter(kind => kinds.includes(kind as Kind)) as Kind[]
        for (const kind of inOrder) await uses[kind](t, true, id)
        const plan = await client.call('GET /extensions/{id}/removal', { id })
        t.match(await client.call('POST /extensions/{id}/remove', { id }), {
          connections: plan.connections.map(({ id: connection }) => connection),
        })
        t.equal(await record(), undefined)
        for (const kind of inOrder) await uses[kind](t, false, id)
      })
  },
)

/** Connects, and waits until it is connected. */
const connect = async ({ client }: RunningDaemon, given: object): Promise<void> => {
  for await (const line of await client.call('POST /capabilities', given as never)) if (line.kind === 'result') return
  throw new Error('it was not connected')
}
