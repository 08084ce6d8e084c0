import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { ConnectionSkill } from '../../../plugins/capabilities/contract.js'
import { withList } from '../../../plugins/skills/loaded.js'
import { composeSkill, parseSkill } from '../../../plugins/skills/skill-text.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { clientOf, People } from '../../support/people.js'
import { inner } from '../agent/support.js'

const AGENTS = '# Rules\n\nBe kind.\n'
const people = new People()
people.add('owner@sandbox.local', 'owner')
people.add('ann@example.org', 'collaborator', ['docs'])
people.add('vic@example.org', 'viewer')
let connected: ConnectionSkill[] = []
const daemon = await daemonWith(t, ['skills', 'personas', 'settings', 'activity', 'areas'], {
  files: { 'AGENTS.md': AGENTS, 'docs/a.md': 'a' },
  fakes: { ...people.fakes, 'capabilities.skills': () => ({ skills: connected }) },
})
people.admit(daemon)
const { client, workspace } = daemon
await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
const at = (...names: string[]) => join(workspace, ...names)
const read = (...names: string[]) => readFileSync(at(...names), 'utf8')
const SKILL = { description: 'Use it: "always".', body: 'Do it.\n' }
const post = async (path: string, body: object) =>
  (await daemon.fetch(path, { method: 'POST', body: JSON.stringify(body) })).status
const turnSkills = async (asked = {}) => (await inner(daemon, 'skills.forTurn', asked)).skills.map(({ name }) => name)
const listed = async (name: string, as = client) => (await as.call('GET /skills')).find(each => each.name === name)

t.test('without a credential, with another scope and as a viewer nothing is written', async t => {
  t.equal((await fetch(`${daemon.url}/skills`)).status, 401)
  const { client: reader } = await daemon.token('read')
  t.ok(await reader.call('GET /skills'))
  t.match(await refusalOf(() => reader.call('POST /skills', { name: 'a', ...SKILL })), { status: 403 })
  const { client: editor } = await daemon.token('editor')
  t.match(await refusalOf(() => editor.call('GET /skills')), { status: 403 })
  const vic = clientOf(daemon, 'vic@example.org')
  t.match(await refusalOf(() => vic.call('POST /skills', { name: 'a', ...SKILL })), { status: 403 })
})

t.test('what connections say of themselves is shown to maintainers alone', async t => {
  const text = '---\nname: inbox\ndescription: The account ada.\n---\nThe user name is ada.\n'
  connected = [{ id: 'inbox', name: 'inbox', text }]
  t.teardown(() => (connected = []))
  const id = 'capability:inbox:inbox'
  t.match(await listed('inbox'), { id, origin: 'capability', owner: 'inbox', description: 'The account ada.' })
  t.match(await client.call('GET /skills/read', { id }), { body: 'The user name is ada.\n' })
  const { client: reader } = await daemon.token('read')
  for (const as of [reader, clientOf(daemon, 'vic@example.org'), clientOf(daemon, 'ann@example.org')]) {
    t.equal(await listed('inbox', as), undefined)
    t.equal((await refusalOf(() => as.call('GET /skills/read', { id }))).status, 404)
  }
  t.ok((await turnSkills()).includes('inbox'))
})

t.test('a skill is loaded, linked and listed, and the same text again changes no byte', async t => {
  await client.call('POST /skills', { name: 'first', ...SKILL })
  t.match(
    read('.agents/skills/first/SKILL.md'),
    /^---\nname: first\ndescription: "Use it: \\"always\\"\."\n---\n\nDo it\.\n$/,
  )
  t.equal(readlinkSync(at('.claude/skills/first')), '../../.agents/skills/first')
  t.match(read('.claude/skills/first/SKILL.md'), /Do it/)
  t.ok(read('AGENTS.md').startsWith(AGENTS), 'what was there is as it was')
  t.equal(read('AGENTS.md').match(/^- first: /gm)?.length, 1)
  const { ino, mtimeMs } = lstatSync(at('.agents/skills/first/SKILL.md'))
  await client.call('POST /skills', { name: 'first', ...SKILL })
  t.match(lstatSync(at('.agents/skills/first/SKILL.md')), { ino, mtimeMs })
  t.match(await listed('first'), { origin: 'own', enabled: true, switchable: true, editable: true, removable: true })
  t.same(await client.call('GET /skills/read', { id: 'first' }), { id: 'first', name: 'first', ...SKILL, files: [] })
  t.same((await client.call('GET /settings')).skills, ['first'])
})

t.test('a skill that is switched off is for no turn, also after an edit, until it is on again', async t => {
  await client.call('POST /skills', { name: 'switched', ...SKILL })
  await client.call('POST /skills/enabled', { id: 'switched', enabled: false })
  await client.call('POST /skills/enabled', { id: 'switched', enabled: false })
  t.notOk(existsSync(at('.agents/skills/switched')))
  t.throws(() => lstatSync(at('.claude/skills/switched')), { code: 'ENOENT' })
  t.notMatch(read('AGENTS.md'), /switched/)
  await client.call('POST /skills', { name: 'switched', ...SKILL, body: 'Edited.' })
  t.match(await listed('switched'), { enabled: false })
  t.notOk((await turnSkills()).includes('switched'))
  await client.call('POST /skills/enabled', { id: 'switched', enabled: true })
  t.ok((await turnSkills()).includes('switched'))
  t.match(read('.agents/skills/switched/SKILL.md'), /Edited/)
  t.equal(await post('/skills/enabled', { id: 'none', enabled: true }), 404)
})

t.test('a built-in skill is off at first, is switched on, and is never written over or removed', async t => {
  t.match(await listed('subagents'), { origin: 'builtin', enabled: false, switchable: true, editable: false })
  await client.call('POST /skills/enabled', { id: 'subagents', enabled: true })
  t.ok((await turnSkills()).includes('subagents'))
  t.match(await inner(daemon, 'skills.text', { name: 'subagents' }), { text: /Delegate/, files: exactly() })
  t.equal(await post('/skills', { name: 'subagents', ...SKILL }), 409)
  t.equal(await post('/skills/remove', { name: 'subagents' }), 409)
  await client.call('POST /skills/enabled', { id: 'subagents', enabled: false })
})

t.test('a folder placed by hand is a skill that nobody here changes, but a maintainer may remove', async t => {
  mkdirSync(at('.agents/skills/loose/scripts'), { recursive: true })
  writeFileSync(at('.agents/skills/loose/SKILL.md'), 'Just a text.\n')
  writeFileSync(at('.agents/skills/loose/scripts/run.sh'), 'echo hi\n')
  symlinkSync('/etc/passwd', at('.agents/skills/loose/passwd'))
  t.match(await listed('loose'), { origin: 'dropped', enabled: true, switchable: false, removable: true, files: 1 })
  t.equal(await post('/skills', { name: 'loose', ...SKILL }), 409)
  t.equal(await post('/skills/enabled', { id: 'loose', enabled: false }), 409)
  t.equal(read('.agents/skills/loose/SKILL.md'), 'Just a text.\n')
  t.match(await inner(daemon, 'skills.text', { name: 'loose', file: 'scripts/run.sh' }), { text: 'echo hi\n' })
  const secret = await inner(daemon, 'skills.text', { name: 'loose', file: 'passwd' }).catch(
    (error: Error) => error.message,
  )
  t.match(secret, /no file passwd/)
  t.notOk(await listed('loose', clientOf(daemon, 'ann@example.org')), 'it lies outside the areas of ann')
  t.notOk((await turnSkills({ folders: [{ path: 'docs', access: 'work' }] })).includes('loose'))
  await client.call('POST /skills/remove', { name: 'loose' })
  t.notOk(existsSync(at('.agents/skills/loose')))
  t.equal(await post('/skills/remove', { name: 'loose' }), 404)
})

t.test('a file or link of somebody else in the place of a link stays', async t => {
  mkdirSync(at('.claude/skills/mine'), { recursive: true })
  writeFileSync(at('.claude/skills/mine/note'), 'hand')
  await client.call('POST /skills', { name: 'mine', ...SKILL })
  t.equal(read('.claude/skills/mine/note'), 'hand')
  await client.call('POST /skills/remove', { name: 'mine' })
  t.equal(read('.claude/skills/mine/note'), 'hand')
})

t.test('a folder that became a link is not written through', async t => {
  const outside = join(daemon.data, '..', 'outside')
  mkdirSync(outside)
  await client.call('POST /skills', { name: 'swapped', ...SKILL })
  rmSync(at('.agents/skills/swapped'), { recursive: true })
  symlinkSync(outside, at('.agents/skills/swapped'))
  t.equal(await post('/skills', { name: 'swapped', ...SKILL, body: 'Other.' }), 422)
  t.throws(() => lstatSync(join(outside, 'SKILL.md')), { code: 'ENOENT' })
  await client.call('POST /skills/remove', { name: 'swapped' })
  t.ok(existsSync(outside))
})

t.test('the kit of a persona is listed with its owner, and is removed there', async t => {
  await client.call('POST /personas', { id: 'poet', label: 'Poet', capabilities: [] })
  await client.call('POST /personas/{id}/skills', { id: 'poet', name: 'rhyme', ...SKILL })
  t.match(await listed('rhyme'), { id: 'persona:poet:rhyme', origin: 'persona', owner: 'Poet', switchable: false })
  t.match(await client.call('GET /skills/read', { id: 'persona:poet:rhyme' }), { body: SKILL.body })
  t.match(await refusalOf(() => client.call('POST /skills/remove', { name: 'rhyme' })), {
    status: 409,
    message: 'persona poet',
  })
  t.ok((await turnSkills({ persona: 'poet' })).includes('rhyme'))
  t.notOk((await turnSkills()).includes('rhyme'))
})

t.test('two saves at once are both on, and bad input is refused', async t => {
  await Promise.all(['one', 'two'].map(name => client.call('POST /skills', { name, ...SKILL })))
  const { skills } = await client.call('GET /settings')
  t.ok(skills.includes('one') && skills.includes('two'))
  for (const bad of [{ name: 'No' }, { name: '../x' }, { description: '' }, { body: '' }])
    t.equal(await post('/skills', { name: 'ok', ...SKILL, ...bad }), 400)
  t.equal((await daemon.fetch('/skills/read?id=none')).status, 404)
  const { events } = await client.call('GET /activity', {})
  for (const type of ['skill.saved', 'skill.removed'])
    t.ok(
      events.some(event => event.type === type),
      type,
    )
})

t.test('the text of a skill is read with any valid front matter', t => {
  for (const body of ['Body', 'Body\n', '\nBody\n\n', '\r\nBody\r\n', '---\nname: b\n---\n', '\ufeffBody', ' '])
    t.same(parseSkill(composeSkill('a', 'x: "y"\nz', body)), { description: 'x: "y"\nz', body })
  t.same(parseSkill('---\nname: a\ndescription: >\n  two\n  lines\n---\nBody'), {
    description: 'two lines',
    body: 'Body',
  })
  t.same(parseSkill('---\n: [\n---\nBody'), { description: '', body: 'Body' })
  t.same(parseSkill('Body'), { description: '', body: 'Body' })
  t.end()
})

t.test('the list in AGENTS.md comes, changes and goes without a trace', t => {
  const one = withList('before', new Map([['a', 'x\ny']]))
  t.match(one, /^before\n<!--.*-->\n- a: x y \(.*\)\n<!--.*-->\n$/)
  t.equal(withList(`${one}after\n`, new Map()), 'before\nafter\n')
  t.equal(withList(withList('', new Map([['a', '']])), new Map()), '')
  t.end()
})
