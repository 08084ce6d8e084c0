import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { takeContents } from '../../../plugins/capabilities/agent-plugins/contents.js'
import { folderOfCheckout, leavesFolder, readCodeFolder } from '../../../sdk/node/transport/code-folder.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { exactly } from '../../support/lists.js'

const ABOUT = '.claude-plugin/plugin.json'
const written = (root: string, files: { readonly [path: string]: string }): string => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return root
}

t.test('programs that load plugins find no tool server, however its description is written', async t => {
  const servers = { mcpServers: { own: { command: 'own' } } }
  const list = { 'more.json': JSON.stringify(servers) }
  for (const [about, names, problem] of [
    [servers, ['own'], undefined],
    [{ mcpServers: './more.json' }, ['own'], undefined],
    [{ mcpServers: ['./more.json'] }, [], /mcpServers of .*plugin\.json is not used: expected an object/],
    [{ mcpServers: '../more.json' }, [], /mcpServers of .*plugin\.json is not used: expected an object/],
    [{ ...servers, padding: 'x'.repeat(300_000) }, [], /plugin\.json is not used: expected a JSON object/],
  ] as const) {
    const root = written(t.testdir(), { ...list, [ABOUT]: JSON.stringify(about) })
    const contents = await takeContents(root)
    const said = JSON.stringify(about).slice(0, 60)
    t.same(
      contents.servers.map(({ name }) => name),
      names,
      said,
    )
    t.match(contents.problems, problem ? exactly(problem) : exactly(), said)
    t.notMatch(existsSync(join(root, ABOUT)) ? readFileSync(join(root, ABOUT), 'utf8') : '', /mcpServers/, said)
  }
  const root = written(t.testdir(), { 'about.json': JSON.stringify(servers), 'hooks.json': '{}' })
  mkdirSync(join(root, '.claude-plugin'))
  symlinkSync('../about.json', join(root, ABOUT))
  t.match(await takeContents(root), { servers: exactly(), problems: exactly(/plugin\.json is not used/) })
  t.notOk(existsSync(join(root, ABOUT)), 'nor through a link')
})

t.test('hooks at another place than usual are said', async t => {
  for (const hooks of ['./more.json', ['./more.json'], {}])
    t.equal((await takeContents(written(t.testdir(), { [ABOUT]: JSON.stringify({ hooks }) }))).hooks, true)
  t.equal((await takeContents(written(t.testdir(), { [ABOUT]: '{}' }))).hooks, false)
})

t.test('its size is that of the files that are kept', async t => {
  const root = written(t.testdir(), {
    '.mcp.json': '{"mcpServers":{}}',
    [ABOUT]: JSON.stringify({ name: 'x', mcpServers: {} }),
    'skills/one/SKILL.md': 'One.\n',
  })
  const { files, bytes } = await takeContents(root)
  const left = await readCodeFolder(root, { hashed: false })
  t.same([files, bytes], [left.files.size, left.bytes])
})

t.test('no chain of links leads out of a folder, and none is on the way to it', async t => {
  for (const [path, target, leaves] of [
    ['a', 'b', false],
    ['a', './b/c', false],
    ['x/a', '..', false],
    ['x/y/a', '../../b', false],
    ['a', '..', true],
    ['a', '/etc', true],
    ['a', '', true],
    ['x/a', '../../b', true],
    ['a', 'b/..', true],
    ['x/a', '../b/../c', true],
    ['a', './b//../c', true],
  ] as const)
    t.equal(leavesFolder(path, target), leaves, `${path} -> ${target}`)
  const root = t.testdir({ inner: { 'file.txt': 'x' } })
  symlinkSync('.', join(root, 'here'))
  symlinkSync('here/..', join(root, 'out'))
  t.match((await readCodeFolder(root, { hashed: false })).wrong, /out is a link that leaves its folder/)
  t.equal(await folderOfCheckout(root, 'inner'), join(root, 'inner'))
  t.equal(await folderOfCheckout(root, ''), join(root, ''))
  for (const path of ['out', 'here', 'here/inner'])
    t.match(await refusalOf(() => folderOfCheckout(root, path)), { status: 422, message: /is a link, or behind one/ })
})
