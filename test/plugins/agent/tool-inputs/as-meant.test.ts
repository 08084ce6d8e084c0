import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { asMeant, pathAsMeant } from '../../../../plugins/agent/tool-inputs/as-meant.js'
import { exactly } from '../../../support/lists.js'
import type { SeenRequest } from '../../../support/servers/model-server.js'
import { briefedWorld } from '../briefing/world.js'

const resultsIn = ({ body: { messages = [] } }: SeenRequest): string[] =>
  messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content))

t.test('paths that begin as models begin them are those of the tree, and what leads out of it stays so', async t => {
  const roots = ['/srv/space', '/copies/c']
  const cases = {
    'src/a.ts': 'src/a.ts',
    './src/a.ts': 'src/a.ts',
    '././/a': 'a',
    './': '.',
    '.': '.',
    '/srv/space/src/a.ts': 'src/a.ts',
    '/srv/space//a': 'a',
    '/srv/space/./a': 'a',
    '/srv/space': '.',
    '/copies/c/a': 'a',
    '/srv/spaces/a': '/srv/spaces/a',
    '/srv': '/srv',
    '/etc/passwd': '/etc/passwd',
    '/srv/space/../x': '../x',
    './../x': '../x',
    '.hidden': '.hidden',
    '': '',
  }
  for (const [path, meant] of Object.entries(cases)) t.equal(pathAsMeant(path, roots), meant, path)
})

t.test('numbers, switches and lists that are written as text are what a field takes; texts stay texts', async t => {
  const meant = (name: string, input: object) => asMeant(name, input, ['/w'])
  t.strictSame(meant('Read', { path: './a', offset: '3', limit: ' 10 ' }), { path: 'a', offset: 3, limit: 10 })
  t.strictSame(meant('Read', { path: 'a', offset: null, limit: 'ten' }), { path: 'a', limit: 'ten' })
  t.strictSame(meant('Edit', { path: 'a', old: '1', new: 'true', all: 'True' }), {
    path: 'a',
    old: '1',
    new: 'true',
    all: true,
  })
  t.strictSame(meant('Todo', { items: '[{"content":"x","status":"pending"}]' }), {
    items: [{ content: 'x', status: 'pending' }],
  })
  t.strictSame(meant('Todo', { items: 'no list' }), { items: 'no list' })
  t.strictSame(
    meant('Write', { path: '/w/a', content: '/w/a' }),
    { path: 'a', content: '/w/a' },
    'a content is no path',
  )
  t.strictSame(
    meant('Edit', { path: 'a', from: './1', new: '' }),
    { path: 'a', from: './1', new: '' },
    'a line is no path',
  )
})

t.test('a model that names files as its shell does reads and writes its private copy, and nothing else', async t => {
  let root = ''
  const { server, turn, workspace } = await briefedWorld(
    t,
    (_request, nth) =>
      nth > 0
        ? { text: ['done'] }
        : {
            calls: [
              { name: 'Read', input: { path: './a.txt', offset: '2', limit: '1' } },
              { name: 'Read', input: { path: `${root}/a.txt` } },
              { name: 'Write', input: { path: `${root}/made.txt`, content: 'made\n' } },
              { name: 'Shell', input: { command: 'cat made.txt', cwd: root } },
              { name: 'Read', input: { path: '/etc/passwd' } },
              { name: 'Read', input: { path: `${root}/../other` } },
              { name: 'Todo', input: { items: '[{"content":"read","status":"pending"}]' } },
            ],
          },
    { files: { 'a.txt': 'one\ntwo\nthree\n' } },
  )
  root = workspace
  const frames = await turn('c', { isolated: true })
  const [lines, whole, , shell, outside, above, listed] = resultsIn(server.requests[1]!)
  t.equal(lines, 'two')
  t.equal(whole, readFileSync(join(workspace, 'a.txt'), 'utf8'))
  t.equal(shell, 'made\n')
  t.notOk(existsSync(join(workspace, 'made.txt')), 'it was written in the copy')
  t.equal(listed, '[ ] read')
  t.match(
    frames.find(({ kind }) => kind === 'todos'),
    { items: exactly({ content: 'read' }) },
  )
  for (const refused of [outside, above]) t.match(refused, /expected a workspace path/)
})
