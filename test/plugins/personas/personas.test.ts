import { existsSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { PersonaCard } from '../../../plugins/personas/contract.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { clientOf, People } from '../../support/people.js'

const FILE = '.sandbox/config/personas.json'
const GROUPS = ['personas', 'skills', 'settings', 'activity', 'areas', 'capabilities']

const people = new People()
people.add('owner@sandbox.local', 'owner')
people.add('ann@example.org', 'collaborator', ['docs'])
people.add('vic@example.org', 'viewer')
const daemon = await daemonWith(t, GROUPS, {
  files: { 'docs/a.md': 'a', 'src/b.ts': 'b', 'docs/deep/c.md': 'c' },
  fakes: people.fakes,
})
people.admit(daemon)
const { client, workspace } = daemon
await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
const ann = clientOf(daemon, 'ann@example.org')

const post = async ({ fetch }: Support, path: string, body: object) => {
  const response = await fetch(path, { method: 'POST', body: JSON.stringify(body) })
  return { status: response.status, body: (await response.json()) as { message: string; errors?: { path: string }[] } }
}
const text = () => readFileSync(join(workspace, FILE), 'utf8')
const saved = async (card: PersonaCard) => {
  await client.call('POST /personas', card)
  return (await client.call('GET /personas')).personas.find(({ id }) => id === card.id)
}

t.test('without a credential nothing is listed or written', async t => {
  t.equal((await fetch(`${daemon.url}/personas`)).status, 401)
  t.equal((await fetch(`${daemon.url}/personas/a`, { method: 'DELETE' })).status, 401)
  t.notOk(existsSync(join(workspace, FILE)))
})

t.test('a token reads by its scope, and neither it nor a viewer writes', async t => {
  const { client: reader } = await daemon.token('read')
  t.same(await reader.call('GET /personas'), { personas: [] })
  t.match(await refusalOf(() => reader.call('POST /personas', { id: 'a', capabilities: [] })), { status: 403 })
  const { client: editor } = await daemon.token('editor')
  t.match(await refusalOf(() => editor.call('GET /personas')), { status: 403 })
  const vic = clientOf(daemon, 'vic@example.org')
  t.match(await refusalOf(() => vic.call('POST /personas', { id: 'a', capabilities: [] })), { status: 403 })
})

t.test('a card is stored whole, with plain paths and each entry of a list once', async t => {
  const card = {
    id: 'one',
    label: ' One ',
    capabilities: ['a', 'a'],
    workspace: { folders: ['docs/', './docs', 'no/../src'] },
  }
  t.same(await saved(card), {
    id: 'one',
    label: 'One',
    capabilities: ['a'],
    workspace: { folders: ['docs', 'src'] },
    connected: [],
  })
  t.same(await saved({ id: 'one', capabilities: [] }), { id: 'one', capabilities: [], connected: [] }, 'replaced whole')
  await client.call('POST /personas', { id: 'one', capabilities: [], connected: ['a'] })
  t.notMatch(text(), /connected/)
})

t.test('bad input is refused by name, and the file stays as it is', async t => {
  await saved({ id: 'one', capabilities: [] })
  const before = text()
  const bad: [path: string, more: object][] = [
    ['extra', { extra: 1 }],
    ['powers.fly', { powers: { fly: true } }],
    ['id', { id: 'x'.repeat(61) }],
    ['workspace.folders[0]', { workspace: { folders: ['../x'] } }],
    ['workspace.folders[1]', { workspace: { folders: ['docs', '/etc'] } }],
    ['workspace.startIn', { workspace: { startIn: '.sandbox/config' } }],
    ['context.repos[0]', { context: { repos: ['a/.git'] } }],
    ['systemPromptMode', { systemPromptMode: 'own' }],
  ]
  for (const [path, more] of bad) {
    const answer = await post(daemon, '/personas', { id: 'one', capabilities: [], ...more })
    t.match(answer, { status: 400, body: { errors: exactly({ path }) } }, path)
  }
  t.equal(text(), before)
})

t.test('the card that answers strangers keeps narrow powers', async t => {
  const wide = await post(daemon, '/personas', { id: 'front-desk', capabilities: [] })
  t.match(wide, { status: 409, body: { message: /files none or read.*shell false.*a list for mcp/ } })
  const lists = { mcp: [], connectors: [], devices: [], extensions: [] }
  const powers = { files: 'read' as const, shell: false, code: false, delegate: false, sandbox: false, ...lists }
  t.ok(await saved({ id: 'front-desk', capabilities: [], powers }))
  t.equal(
    (await post(daemon, '/personas', { id: 'front-desk', capabilities: [], powers: { ...powers, shell: true } }))
      .status,
    409,
  )
})

t.test('a kit holds a prompt and skills, which go with the card', async t => {
  await saved({ id: 'kit', capabilities: [] })
  const folder = join(workspace, '.sandbox/config/personas/kit')
  await client.call('POST /personas/{id}/prompt', { id: 'kit', prompt: 'You are kind.' })
  const skill = { name: 'greet', description: 'Use it to "greet":\nalways.', body: '# Greet\nSay hello.\n' }
  await client.call('POST /personas/{id}/skills', { id: 'kit', ...skill })
  writeFileSync(join(folder, 'skills/greet/names.txt'), 'Ada')
  t.same(await client.call('GET /personas/{id}/kit', { id: 'kit' }), {
    prompt: 'You are kind.',
    skills: [{ name: 'greet', description: skill.description }],
  })
  t.same(await client.call('GET /personas/{id}/skills/read', { id: 'kit', name: 'greet' }), skill)
  await client.call('POST /personas/{id}/skills', { id: 'kit', ...skill, body: 'Other.\n' })
  t.ok(existsSync(join(folder, 'skills/greet/names.txt')), 'files beside it stay')
  t.equal((await post(daemon, '/personas/kit/skills', { ...skill, body: '' })).status, 400)
  t.equal((await post(daemon, '/personas/kit/prompt', { prompt: 'x'.repeat(20_001) })).status, 400)
  t.equal((await post(daemon, '/personas/none/prompt', { prompt: 'x' })).status, 404)
  t.equal((await post(daemon, '/personas/none/skills', skill)).status, 404)
  t.equal((await daemon.fetch('/personas/none/kit')).status, 404)
  t.equal((await daemon.fetch('/personas/kit/skills/read?name=none')).status, 404)
  await client.call('POST /personas/{id}/skills/remove', { id: 'kit', name: 'greet' })
  await client.call('POST /personas/{id}/skills/remove', { id: 'kit', name: 'greet' })
  t.notOk(existsSync(join(folder, 'skills/greet')))
  await client.call('POST /personas/{id}/prompt', { id: 'kit', prompt: ' \n' })
  t.notOk(existsSync(join(folder, 'PROMPT.md')))
  await client.call('DELETE /personas/{id}', { id: 'kit' })
  await client.call('DELETE /personas/{id}', { id: 'kit' })
  t.notOk(existsSync(folder))
  t.notMatch(text(), /"kit"/)
})

t.test('a link in place of a kit is not followed, and its target stays', async t => {
  await saved({ id: 'linked', capabilities: [] })
  const outside = join(daemon.data, '..', 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'PROMPT.md'), 'theirs')
  symlinkSync(outside, join(workspace, '.sandbox/config/personas/linked'))
  t.match(await client.call('GET /personas/{id}/kit', { id: 'linked' }), { prompt: '' })
  t.equal((await post(daemon, '/personas/linked/prompt', { prompt: 'mine' })).status, 422)
  await client.call('DELETE /personas/{id}', { id: 'linked' })
  t.equal(readFileSync(join(outside, 'PROMPT.md'), 'utf8'), 'theirs')
  t.throws(() => lstatSync(join(workspace, '.sandbox/config/personas/linked')), { code: 'ENOENT' })
})

t.test('the preview of a turn names the field of the card that removes something', async t => {
  await saved({
    id: 'narrow',
    capabilities: ['ghost'],
    powers: { files: 'read', shell: false },
    workspace: { startIn: 'gone', folders: ['docs'] },
    systemPromptMode: 'custom',
  })
  const found = await client.call('GET /personas/{id}/resolved', { id: 'narrow' })
  t.match(found, {
    label: 'narrow',
    powers: { files: 'read', shell: false, code: true, connectors: exactly(), mcp: exactly() },
    accounts: exactly({ id: 'ghost', kind: '', connected: false }),
    prompt: { mode: 'core', from: 'sandbox' },
    workspace: { startIn: 'gone', folders: exactly('docs'), missing: exactly('gone') },
  })
  t.match(
    found.withheld.find(({ tool }) => tool === 'Write'),
    { by: 'powers.files' },
  )
  t.match(
    found.withheld.find(({ tool }) => tool === 'Shell'),
    { by: 'powers.shell' },
  )
  t.ok(found.tools.includes('Read') && !found.tools.includes('Write'))
  t.match(found.problems.join('\n'), /ghost exists nowhere[^]*no folder gone[^]*no prompt/)
  const alone = await client.call('GET /personas/{id}/resolved', { id: 'narrow', unattended: true })
  const onlyThen = alone.withheld.filter(({ tool }) => found.tools.includes(tool))
  const asking = ['Ask', 'Plan', 'Handover', 'Connect']
  t.same(onlyThen.map(({ tool }) => tool).sort(), [...asking].sort())
  t.ok(onlyThen.every(({ by }) => by === 'unattended') && !alone.tools.some(tool => asking.includes(tool)))
  t.equal((await daemon.fetch('/personas/nobody/resolved')).status, 404)
})

t.test('people limited to areas see the folders they reach, and no card that has none of them', async t => {
  await saved({ id: 'free', capabilities: [] })
  await saved({ id: 'both', capabilities: [], workspace: { startIn: 'src', folders: ['src', 'docs'] } })
  await saved({ id: 'theirs', capabilities: [], workspace: { folders: ['src'] } })
  const { personas } = await ann.call('GET /personas')
  t.ok(personas.some(({ id }) => id === 'free'))
  t.match(
    personas.find(({ id }) => id === 'both'),
    { workspace: { folders: exactly('docs'), startIn: undefined } },
  )
  t.notOk(personas.some(({ id }) => id === 'theirs'))
  for (const call of ['GET /personas/{id}/kit', 'GET /personas/{id}/resolved'] as const)
    t.match(await refusalOf(() => ann.call(call, { id: 'theirs' })), { status: 404, message: 'there is no persona' })
  t.match(await ann.call('GET /personas/{id}/resolved', { id: 'both' }), {
    workspace: { startIn: '.', missing: exactly() },
  })
})

t.test('an entry of the file that does not fit is no persona, and a person reads why', async t => {
  const before = text()
  const wrong = {
    ...JSON.parse(before),
    odd: { capabilities: [], fly: 1 },
    wide: { capabilities: [], workspace: { folders: ['..'] } },
  }
  writeFileSync(join(workspace, FILE), JSON.stringify(wrong))
  t.notOk((await client.call('GET /personas')).personas.some(({ id }) => ['odd', 'wide'].includes(id)))
  const other = await daemonWith(t, ['personas', 'skills', 'settings', 'system'], {
    workspace,
    data: join(daemon.data, '..', 'other'),
  })
  const problems = JSON.stringify(await other.client.call('GET /system/manifest-problems'))
  t.match(problems, /odd.*fly/)
  t.match(problems, /wide.*workspace.folders/)
  writeFileSync(join(workspace, FILE), '{')
  t.match(await client.call('GET /personas'), { personas: exactly() })
  t.equal((await post(daemon, '/personas', { id: 'new', capabilities: [] })).status, 422)
  t.equal(text(), '{')
  writeFileSync(join(workspace, FILE), before)
})

t.test('cards written at once are all there, and who wrote and removed them is on record', async t => {
  await Promise.all(
    Array.from({ length: 8 }, (_, nth) => client.call('POST /personas', { id: `w${nth}`, capabilities: [] })),
  )
  const { personas } = await client.call('GET /personas')
  t.equal(personas.filter(({ id }) => /^w\d$/.test(id)).length, 8)
  await client.call('DELETE /personas/{id}', { id: 'w0' })
  const { events } = await client.call('GET /activity', {})
  for (const type of ['persona.saved', 'persona.removed'])
    t.ok(
      events.some(event => event.type === type),
      type,
    )
})
