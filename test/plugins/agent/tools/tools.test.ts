import { execFile } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { Refusal } from '../../../../sdk/index.js'
import type { ToolResult } from '../../../../plugins/agent/providers/adapter.js'
import type { CardReply } from '../../../../plugins/agent/turn/frames/frames.js'
import type { ToolContext } from '../../../../plugins/agent/tools/tool.js'
import { NO_TOOL_PARTS } from '../../../../plugins/agent/tools/tool-parts.js'
import { cut } from '../../../../plugins/agent/tools/content.js'
import { tools } from '../../../../plugins/agent/tools/tools.js'
import { stamp } from '../../../../plugins/agent/tools/tree.js'
import { exactly } from '../../../support/lists.js'
import { misfits, type Schema } from '../../../support/schema.js'

interface Place {
  root: string
  outside: string
  call(name: string, input: object, context?: Partial<ToolContext>): Promise<ToolResult>
  read(path: string): string
}

const place = (t: Test): Place => {
  const dir = realpathSync(
    t.testdir({
      root: {
        '.git': { config: 'secret' },
        '.sandbox': { config: { 'rules.json': '{}' } },
        src: { 'main.ts': 'one\ntwo\nthree\n' },
        'notes.txt': 'hello\n',
        empty: {},
        sub: { '.git': 'gitdir: elsewhere' },
      },
      outside: { 'target.txt': 'untouched' },
    }),
  )
  const [root, outside] = [join(dir, 'root'), join(dir, 'outside')]
  symlinkSync(outside, join(root, 'out'))
  symlinkSync(join(outside, 'target.txt'), join(root, 'out.txt'))
  symlinkSync('src', join(root, 'link'))
  symlinkSync('.git', join(root, 'gitlink'))
  symlinkSync('nowhere', join(root, 'broken'))
  const context: ToolContext = {
    root,
    call: 'c1',
    signal: new AbortController().signal,
    code: async () => ({ exit: 0, output: '', truncated: false, timedOut: false }),
    reach: async () => ({ near: true, listeners: [] }),
    references: { command: async text => ({ text, env: {} }), text: async text => text },
    ...NO_TOOL_PARTS,
    skill: async name => ({ text: `how to ${name}`, files: [] }),
    approvals: { served: async () => true, file: async () => ({ id: 'a-1' }) },
    needs: { served: async () => true, raise: async () => 'n-1', withdraw: async () => {} },
    person: { attends: false, ask: async () => undefined, approved: () => {} },
    subagents: { delegate: async () => ({ status: 'failed', summary: 'no helpers here' }), join: async () => [] },
    shell: async (command, cwd, { timeoutMs }) => {
      const ran = promisify(execFile)('sh', ['-c', command], { cwd, timeout: timeoutMs }).then(({ stdout }) => ({
        exit: 0,
        output: stdout,
      }))
      return {
        truncated: false,
        timedOut: false,
        ...(await ran.catch(error => ({ exit: error.code ?? 143, timedOut: error.killed, output: error.stdout }))),
      }
    },
  }
  return {
    root,
    outside,
    call: async (name, input, more = {}) => {
      const checked = tools[name]!.check(input)
      const { input: schema } = tools[name]!.schema()
      t.same(misfits(schema as Schema, input, name), [])
      return tools[name]!.run(checked, { ...context, ...more })
    },
    read: path => readFileSync(join(root, path), 'utf8'),
  }
}

t.test('Write makes a file with its folders and shows what changed', async t => {
  const { call, read, root } = place(t)
  t.match(await call('Write', { path: 'a/b/c.txt', content: 'x\n' }), {
    ok: true,
    content: exactly({ type: 'diff', path: 'a/b/c.txt', newText: 'x\n', oldText: undefined }),
  })
  t.equal(read('a/b/c.txt'), 'x\n')
  t.match(await call('Write', { path: 'notes.txt', content: 'new' }), {
    content: exactly({ oldText: 'hello\n', newText: 'new' }),
  })
  t.same(readdirSync(join(root, 'a/b')), ['c.txt'], 'no other file is left')
})

t.test('a file keeps its permission bits when it is written, appended to and edited', async t => {
  const { call, root } = place(t)
  chmodSync(join(root, 'notes.txt'), 0o751)
  await call('Write', { path: 'notes.txt', content: 'a\n' })
  await call('Append', { path: 'notes.txt', content: 'b\n' })
  await call('Edit', { path: 'notes.txt', old: 'a', new: '$& c' })
  t.equal(statSync(join(root, 'notes.txt')).mode & 0o777, 0o751)
  t.equal(readFileSync(join(root, 'notes.txt'), 'utf8'), '$& c\nb\n')
})

t.test('Edit replaces, inserts and deletes lines that Read named by number and hash', async t => {
  const { call, read } = place(t)
  const names = async (path: string) => {
    const { text } = await call('Read', { path }, { lineHashes: true })
    return text.split('\n').map(line => line.split('|', 1)[0]!)
  }
  const shown = await call('Read', { path: 'src/main.ts', offset: 2 }, { lineHashes: true })
  t.match(shown.text, /^2:[0-9a-f]{4}\|two\n3:[0-9a-f]{4}\|three$/)
  t.match(shown.content, exactly({ type: 'text', text: 'two\nthree' }), 'people see the file as it is')
  t.equal((await call('Read', { path: 'src/main.ts' })).text, 'one\ntwo\nthree\n')
  const [one, two, three] = await names('src/main.ts')
  const edited = await call('Edit', { path: 'src/main.ts', from: two!, to: three!, new: 'TWO\n2.5\n' })
  t.match(edited, {
    ok: true,
    text: /which has there now:\n1:[0-9a-f]{4}\|one\n2:[0-9a-f]{4}\|TWO\n3:[0-9a-f]{4}\|2\.5$/,
  })
  t.equal(read('src/main.ts'), 'one\nTWO\n2.5\n')
  await call('Edit', { path: 'src/main.ts', after: '0', new: 'zero' })
  t.equal(read('src/main.ts'), 'zero\none\nTWO\n2.5\n')
  await call('Edit', { path: 'src/main.ts', from: (await names('src/main.ts'))[2]!, new: '' })
  t.equal(read('src/main.ts'), 'zero\none\n2.5\n')
  const stale = await call('Edit', { path: 'src/main.ts', from: one!, new: 'ONE' })
  t.match(stale, {
    ok: false,
    text: /has no line 1:[0-9a-f]{4}: the file has changed since it was read; its lines there are/,
  })
  t.match(stale.text, /\n1:[0-9a-f]{4}\|zero\n2:[0-9a-f]{4}\|one\n3:[0-9a-f]{4}\|2\.5$/, 'with the lines as they are')
  t.match(await call('Edit', { path: 'src/main.ts', after: '99:0000', new: 'x' }), {
    ok: false,
    text: /has 3 lines: read/,
  })
  const [first, , last] = await names('src/main.ts')
  t.match(await call('Edit', { path: 'src/main.ts', from: last!, to: first!, new: 'x' }), {
    ok: false,
    text: /to: expected/,
  })
  t.equal(read('src/main.ts'), 'zero\none\n2.5\n', 'a refused edit changes nothing')
  await call('Write', { path: 'dos.txt', content: 'a\r\nb\r\nc' })
  await call('Edit', { path: 'dos.txt', after: (await names('dos.txt'))[0]!, new: 'x\ny' })
  t.equal(read('dos.txt'), 'a\r\nx\r\ny\r\nb\r\nc', 'line breaks and the missing last one stay as they are')
  await call('Edit', { path: 'dos.txt', from: (await names('dos.txt'))[4]!, new: 'C' })
  t.equal(read('dos.txt'), 'a\r\nx\r\ny\r\nb\r\nC')
  await call('Write', { path: 'none', content: '' })
  await call('Edit', { path: 'none', after: '0', new: 'x' })
  t.equal(read('none'), 'x\n')
})

t.test('Edit needs exactly one occurrence, or replaces every one with all', async t => {
  const { call, read } = place(t)
  await call('Write', { path: 'x', content: 'a b a' })
  t.match(await call('Edit', { path: 'x', old: 'a', new: 'c' }), {
    ok: false,
    text: /holds the text to replace 2 times/,
  })
  t.match(await call('Edit', { path: 'x', old: 'z', new: 'c' }), { ok: false, text: /0 times, not once/ })
  t.match(await call('Edit', { path: 'nope', old: 'z', new: 'c' }), {
    ok: false,
    text: /nothing in the workspace is named nope/,
  })
  t.equal(read('x'), 'a b a', 'nothing else changes')
  t.match(await call('Edit', { path: 'x', old: 'a', new: 'c', all: true }), { ok: true })
  t.equal(read('x'), 'c b c')
})

t.test('Delete removes a file, a link or an empty folder, and never the target of a link', async t => {
  const { call, root, outside } = place(t)
  t.match(await call('Delete', { path: 'notes.txt' }), {
    ok: true,
    content: exactly({ type: 'diff', oldText: 'hello\n', newText: '' }),
  })
  t.match(await call('Delete', { path: 'empty' }), { ok: true })
  t.match(await call('Delete', { path: 'src' }), { ok: false, text: /not empty/ })
  t.match(await call('Delete', { path: 'nope' }), { ok: false, text: /nothing in the workspace/ })
  t.match(await call('Delete', { path: 'out.txt' }), { ok: true }, 'a link to the outside is itself inside')
  t.match(await call('Delete', { path: 'out' }), { ok: true })
  t.equal(readFileSync(join(outside, 'target.txt'), 'utf8'), 'untouched')
  t.notOk(existsSync(join(root, 'out')))
})

t.test('Move renames and never overwrites', async t => {
  const { call, read, root } = place(t)
  t.match(await call('Move', { from: 'notes.txt', to: 'deep/er/n.txt' }), { ok: true })
  t.equal(read('deep/er/n.txt'), 'hello\n')
  t.match(await call('Move', { from: 'deep/er/n.txt', to: 'src/main.ts' }), { ok: false, text: /exists already/ })
  t.match(await call('Move', { from: 'notes.txt', to: 'x' }), { ok: false, text: /nothing in the workspace/ })
  t.match(await call('Move', { from: 'src', to: 'src/in/side' }), { ok: false, text: /into itself/ })
  t.notOk(existsSync(join(root, 'src/in')))
  t.match(await call('Move', { from: 'broken', to: 'still-broken' }), { ok: true })
  t.ok(lstatSync(join(root, 'still-broken')).isSymbolicLink(), 'a link moves as a link')
})

t.test('several replacements are made in order, or none of them', async t => {
  const { call, read } = place(t)
  const edits = [
    { old: 'one', new: 'two' },
    { old: 'two', new: '2', all: true },
    { old: '  three', new: '3' },
  ]
  t.match(await call('Edit', { path: 'src/main.ts', edits }), {
    ok: true,
    text: 'changed src/main.ts; the text of edit 3 was found with other blanks or line ends',
  })
  t.equal(read('src/main.ts'), '2\n2\n3\n')
  const missing = await call('Edit', { path: 'src/main.ts', edits: [...edits.slice(2), { old: '3', new: '4' }] })
  t.match(missing, { ok: false, text: /^edit 1 of 2: src\/main\.ts holds the text to replace 0 times/ })
  const twice = await call('Edit', {
    path: 'src/main.ts',
    edits: [
      { old: '3', new: '4' },
      { old: '2', new: '5' },
    ],
  })
  t.match(twice, { ok: false, text: /^edit 2 of 2: .* 2 times, not once; .*; nothing was changed$/ })
  t.equal(read('src/main.ts'), '2\n2\n3\n')
  for (const [more, message] of [
    [{}, /takes old: expected the text to replace/],
    [{ edits, new: 'x' }, /takes new: expected none beside edits/],
    [{ edits: [] }, /takes edits/],
    [{ edits, old: 'one' }, /takes old: expected one of old, from, after, edits and patch/],
    [{ old: 'one' }, /takes new: expected the replacement/],
  ] as const)
    t.throws(() => tools.Edit!.check({ path: 'src/main.ts', ...more }), { message })
})

t.test('hostile paths are refused by every tool and nothing outside is touched', async t => {
  const { call, root, outside } = place(t)
  const paths = [
    '../outside/target.txt',
    '/etc/passwd',
    `${outside}/target.txt`,
    'out/target.txt',
    'out.txt',
    'out/new.txt',
    'src/../../outside/x',
    'a//b',
    './x',
    'a\\b',
    'C:/x',
    'x\0y',
    'broken',
    'broken/x',
    'a'.repeat(300),
    'a/'.repeat(3000),
    '..',
    'src/main.ts/x',
    '\ud800',
  ]
  for (const path of paths) {
    for (const [name, more] of [
      ['Write', { content: 'x' }],
      ['Append', { content: 'x' }],
      ['Edit', { old: 'untouched', new: 'x' }],
      ['Read', {}],
      ['List', {}],
    ] as const) {
      const result = await call(name, { path, ...more }).catch(error =>
        error instanceof Refusal ? { ok: false } : Promise.reject(error),
      )
      t.equal(result.ok, false, `${name} ${JSON.stringify(path.slice(0, 40))}`)
    }
    if (path === 'out.txt' || path === 'broken') continue
    for (const [name, input] of [
      ['Delete', { path }],
      ['Move', { from: path, to: 'stolen' }],
      ['Move', { from: 'notes.txt', to: path }],
    ] as const) {
      const result = await call(name, input).catch(error =>
        error instanceof Refusal ? { ok: false } : Promise.reject(error),
      )
      t.equal(result.ok, false, `${name} ${JSON.stringify(path.slice(0, 40))}`)
    }
  }
  t.same(readdirSync(outside), ['target.txt'])
  t.equal(readFileSync(join(outside, 'target.txt'), 'utf8'), 'untouched')
  t.notOk(existsSync(join(root, 'stolen')))
})

t.test('files of git and of the sandbox are never written, in any spelling of their names', async t => {
  const { call, root } = place(t)
  const closed = [
    '.git/config',
    '.git/hooks/x',
    '.git',
    '.GIT/config',
    '.Git /config',
    '.git./config',
    '.g\u200cit/config',
    'sub/.git',
    'new/.git/config',
    '.sandbox/config/rules.json',
    '.SANDBOX/x',
    '.sandbox',
    'gitlink/config',
    'gitlink/new',
  ]
  for (const path of closed) {
    t.match(await call('Write', { path, content: 'x' }), { ok: false, text: /belongs to git or to the sandbox/ }, path)
    t.match(await call('Delete', { path }), { ok: false, text: /belongs/ }, path)
    t.match(await call('Move', { from: 'notes.txt', to: path }), { ok: false, text: /belongs/ }, path)
  }
  t.match(await call('Write', { path: 'a\u0007b', content: 'x' }), { ok: false, text: /control characters/ })
  t.equal(readFileSync(join(root, '.git/config'), 'utf8'), 'secret')
  t.match(await call('Write', { path: '.gitignore', content: 'x' }), { ok: true })
  t.match(await call('Write', { path: 'sub/.sandbox/x', content: 'x' }), { ok: true })
})

t.test('a link that leads inside is followed', async t => {
  const { call, read } = place(t)
  t.match(await call('Write', { path: 'link/main.ts', content: 'x' }), { ok: true })
  t.equal(read('src/main.ts'), 'x')
})

t.test('Read returns text, ranges and pictures, and only describes other files', async t => {
  const { call, root } = place(t)
  t.match(await call('Read', { path: 'src/main.ts' }), { ok: true, text: 'one\ntwo\nthree\n' })
  t.match(await call('Read', { path: 'src/main.ts', offset: 2, limit: 1 }), { text: 'two' })
  t.match(await call('Read', { path: 'src/main.ts', offset: 2 }), { text: 'two\nthree' })
  t.match(await call('Read', { path: 'src/main.ts', offset: 9 }), { ok: false, text: /has 3 lines/ })
  t.match(await call('Read', { path: 'src' }), { ok: false, text: /folder src/ })
  t.match(await call('Read', { path: 'nope' }), { ok: false, text: /named nope/ })
  writeFileSync(join(root, 'b.bin'), Buffer.from([1, 0, 2]))
  writeFileSync(join(root, 'latin'), Buffer.from([0xff, 0x41]))
  writeFileSync(join(root, 'p.png'), Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'))
  t.match(await call('Read', { path: 'b.bin' }), { ok: true, text: 'b.bin is binary: 3 bytes, not shown' })
  t.match(await call('Read', { path: 'latin' }), { text: /is not UTF-8/ })
  t.match(await call('Read', { path: 'p.png' }), { content: exactly({ type: 'image', path: 'p.png' }) })
  t.match(await call('Edit', { path: 'b.bin', old: 'a', new: 'b' }), { ok: false, text: /binary/ })
})

t.test('a pipe is not opened and a huge file is not read', async t => {
  const { call, root } = place(t)
  await promisify(execFile)('mkfifo', [join(root, 'pipe')])
  await promisify(execFile)('truncate', ['-s', '5G', join(root, 'huge')])
  t.match(await call('Read', { path: 'pipe' }), { ok: false, text: /pipe, socket or device/ })
  t.match(await call('Write', { path: 'pipe', content: 'x' }), { ok: false })
  t.match(await call('Read', { path: 'huge' }), { ok: false, text: /5368709120 bytes/ })
  t.match(await call('Append', { path: 'huge', content: 'x' }), { ok: false, text: /bytes/ })
})

t.test('long content is cut and says so', async t => {
  const { call } = place(t)
  const [content] = (await call('Write', { path: 'big', content: 'é'.repeat(100_000) })).content
  t.match(content, { type: 'diff', truncated: true })
  t.ok(
    content?.type === 'diff' && Buffer.byteLength(content.newText) <= 64 * 1024 && !content.newText.includes('\ufffd'),
  )
  const long = `${'line\n'.repeat(40_000)}last\n`
  await call('Write', { path: 'long', content: long })
  t.match(
    (await call('Edit', { path: 'long', old: 'last', new: 'LAST' })).content,
    exactly({ truncated: true, oldText: /line\nlast\n$/, newText: /line\nLAST\n$/ }),
  )
  const [text] = (await call('Read', { path: 'big' })).content
  t.ok(text?.type === 'text' && Buffer.byteLength(text.text) <= 32 * 1024)
  t.match(text, { text: /^é+\n\[\d+ bytes left out\]\né+$/ })
  for (const most of [200, 201, 202, 203])
    t.ok(Buffer.byteLength(cut('😀'.repeat(200), most)) <= most && cut('😀'.repeat(200), most).isWellFormed())
})

t.test('List shows folders, links and depth, and opens neither links nor packages', async t => {
  const { call, root } = place(t)
  mkdirSync(join(root, 'node_modules/x'), { recursive: true })
  const { text } = await call('List', { path: '.', depth: 3 })
  t.same(text.split('\n'), [
    '.git/',
    '.sandbox/',
    '.sandbox/config/',
    '.sandbox/config/rules.json',
    'broken@',
    'empty/',
    'gitlink@',
    'link@',
    'node_modules/',
    'notes.txt',
    'out@',
    'out.txt@',
    'src/',
    'src/main.ts',
    'sub/',
    'sub/.git',
  ])
  t.match(await call('List', { path: 'empty' }), { ok: true, text: 'empty is empty' })
  t.match(await call('List', { path: 'notes.txt' }), { ok: false })
  t.match(await call('List', {}), { ok: true })
})

t.test('Shell runs in a folder of the tree and reports the exit code', async t => {
  const { call, root } = place(t)
  t.match(await call('Shell', { command: 'pwd' }), { ok: true, exit: 0, text: `${root}\n` })
  t.match(await call('Shell', { command: 'pwd', cwd: 'src' }), { text: `${root}/src\n` })
  t.match(await call('Shell', { command: 'printf x; exit 3' }), {
    ok: false,
    exit: 3,
    text: 'x\n[exit 3]',
    content: exactly({ text: 'x\n[exit 3]' }),
  })
  t.match(await call('Shell', { command: 'sleep 5', timeoutMs: 20 }), { ok: false, text: /\[ended after 20 ms\]/ })
  t.match(await call('Shell', { command: 'pwd', cwd: 'out' }), { ok: false })
})

t.test('bad input is refused with its field, the expectation and the finding', async t => {
  const table: [string, unknown, RegExp][] = [
    ['Read', undefined, /Read takes input: expected an object, found nothing/],
    ['Read', [], /found a list/],
    ['Read', {}, /path: expected text,.* not empty, found nothing/],
    ['Read', { path: 3 }, /path.*found 3/],
    ['Read', { path: 'x', offset: 0 }, /offset.*from 1/],
    ['Read', { path: 'x', limit: 1.5 }, /limit.*1\.5/],
    ['Write', { path: 'x' }, /content.*nothing/],
    ['Write', { path: 'x', content: '\ud800' }, /content/],
    ['Edit', { path: 'x', old: '', new: '' }, /old.*not empty/],
    ['Edit', { path: 'x', old: 'a', new: 'b', all: 'yes' }, /all.*true or false/],
    ['Edit', { path: 'x', new: 'b' }, /old: expected the text to replace, a line in from or after, edits or a patch/],
    ['Edit', { path: 'x', old: 'a', from: '1:9f3c', new: 'b' }, /one of old, from, after, edits and patch/],
    ['Edit', { path: 'x', from: 'first', new: 'b' }, /from/],
    ['Edit', { path: 'x', after: '0', to: '1:9f3c', new: 'b' }, /to: expected only with from/],
    ['Edit', { path: 'x', from: '1:9f3c', all: true, new: 'b' }, /all: expected only with old/],
    ['Shell', { command: 'a\0b' }, /NUL/],
    ['Shell', { command: 'a', timeoutMs: 1e9 }, /3600000/],
    ['Process', { action: 'kill' }, /id: expected a value, which kill takes/],
    ['Process', { action: 'list', text: 'y' }, /text: expected none with list/],
    ['Process', { action: 'output', id: '12' }, /id: expected/],
    ['Todo', { items: 'x' }, /items.*list/],
    ['Todo', { items: [{ content: 'a', status: 'constructor' }] }, /items\.0.*status/],
    ['Move', { from: 'a' }, /to: expected/],
    ['List', { path: '.', depth: 99 }, /depth/],
  ]
  for (const [name, input, message] of table) {
    t.throws(
      () => tools[name]!.check(input),
      { reason: 'invalid', message, detail: { errors: exactly({ path: String, expected: String, value: String }) } },
      `${name} ${JSON.stringify(input)}`,
    )
  }
})

t.test('the description of a call names its target', async t => {
  const described = (name: string, input: object) => tools[name]!.describe(tools[name]!.check(input))
  t.same(described('Write', { path: 'a', content: '' }), { target: 'a', path: 'a', locations: [{ path: 'a' }] })
  t.same(described('Read', { path: 'a', offset: 4 }), { target: 'a', path: 'a', locations: [{ path: 'a', line: 4 }] })
  t.match(described('Shell', { command: 'ls' }), { command: 'ls', target: 'ls' })
  t.match(described('Todo', { items: [{ content: 'a', status: 'in_progress' }] }), { target: 'a' })
})

/** Runs `work` as a user without privileges, because the superuser may write everywhere. */
const asNobody = async <T>(work: () => Promise<T>): Promise<T> => {
  if (process.getuid?.() !== 0) return work()
  process.seteuid!(65534)
  return work().finally(() => process.seteuid!(0))
}

t.test('a write that the file system refuses is a failed result, and the old file is kept', async t => {
  const { call, read, root } = place(t)
  chmodSync(join(root, 'src'), 0o555)
  const result = await asNobody(() => call('Write', { path: 'src/main.ts', content: 'x' }))
  chmodSync(join(root, 'src'), 0o755)
  t.match(result, { ok: false, text: /does not allow it/ })
  t.equal(read('src/main.ts'), 'one\ntwo\nthree\n')
})

t.test('replacing a folder by a link during writes never redirects a write to the outside', async t => {
  const { call, root, outside } = place(t)
  const swap = promisify(execFile)(
    'sh',
    ['-c', 'i=0; while [ $i -lt 150 ]; do mkdir -p d; rm -rf d; ln -s ../outside d; rm d; i=$((i+1)); done'],
    { cwd: root },
  )
  let over = false
  void swap.finally(() => (over = true))
  while (!over) await call('Write', { path: 'd/stolen.txt', content: 'x' })
  await swap
  t.same(readdirSync(outside), ['target.txt'])
})

t.test('a stamp changes with the content, and is absent for files that may not be read', async t => {
  const { call, root } = place(t)
  const before = await stamp({ root }, 'notes.txt')
  t.type(before, 'string')
  t.equal(await stamp({ root }, 'notes.txt'), before)
  await call('Append', { path: 'notes.txt', content: 'x' })
  t.not(await stamp({ root }, 'notes.txt'), before)
  t.type(await stamp({ root }, 'src'), 'string')
  for (const path of ['nope', 'no/pe', '../outside/target.txt', 'out.txt', '.git/config', '', '/etc/passwd'])
    t.equal(await stamp({ root }, path), undefined, path)
})

const person = (replies: readonly object[]) => {
  const said: string[] = []
  const left = [...replies]
  return {
    said,
    person: {
      attends: true,
      ask: async () => left.shift() as CardReply | undefined,
      approved: () => void said.push('approved'),
    },
  }
}

t.test('Ask and Plan return the answer of the person', async t => {
  const { call } = place(t)
  const ask = { questions: [{ question: 'Which?', options: [{ label: 'a', description: 'one' }] }] }
  const answers = (reply: object) => call('Ask', ask, person([{ kind: 'question', requestId: 'q', ...reply }]))
  t.match(await answers({ answers: { 'Which?': 'my own words' } }), { ok: true, text: 'Which?: my own words' })
  t.match(await answers({}), { ok: true, text: 'Which?: (skipped)' })
  t.match(await answers({ cancelled: true }), { ok: false, text: /cancelled/ })
  t.match(await call('Ask', ask, person([])), { ok: false, text: 'nobody answered' })
  t.match(await call('Ask', ask), { ok: false, text: /nobody watches/ })
  const [yes, no] = [
    person([{ kind: 'plan', requestId: 'p', approve: true }]),
    person([{ kind: 'plan', requestId: 'p', approve: false, feedback: 'smaller' }]),
  ]
  t.match(await call('Plan', { text: 'do' }, yes), { ok: true })
  t.match(await call('Plan', { text: 'do' }, no), { ok: false, text: /not approved: smaller/ })
  t.same([yes.said, no.said], [['approved'], []])
})

t.test('Ask, Plan, Code and Fetch refuse invalid input, and name the field', async t => {
  const bad: [string, unknown, RegExp][] = [
    ['Ask', {}, /questions/],
    ['Ask', { questions: [] }, /at least 1/],
    ['Ask', { questions: [{ question: 'a' }] }, /options/],
    ['Ask', { questions: [{ question: 'a', options: [{}] }] }, /questions\.0\.options\.0.*label/],
    ['Ask', { questions: [{ question: 'a', options: [{ label: 'x' }, { label: 'x' }] }] }, /expected unique labels/],
    [
      'Ask',
      {
        questions: [
          { question: 'a', options: [] },
          { question: 'a', options: [] },
        ],
      },
      /expected unique questions/,
    ],
    ['Plan', { text: '' }, /text/],
    ['Code', {}, /source/],
    ['Code', { source: '' }, /source/],
    ['Code', { source: 'x', timeoutMs: 0 }, /timeoutMs/],
    ['Fetch', {}, /url/],
    ['Fetch', { url: 'file:///etc/passwd' }, /http or https/],
    ['Fetch', { url: '/relative' }, /http or https/],
    ['Fetch', { url: 'http://x', method: 'CONNECT' }, /method/],
    ['Fetch', { url: 'http://x', body: 'b' }, /none with GET/],
    ['Fetch', { url: 'http://x', headers: { host: 'y' } }, /headers\.host/],
    ['Fetch', { url: 'http://x', headers: { 'a b': 'y' } }, /headers\.a b/],
    ['Fetch', { url: 'http://x', headers: { a: 'y\r\nb: c' } }, /headers\.a/],
    ['Fetch', { url: 'http://x', headers: ['a'] }, /headers/],
  ]
  for (const [name, input, message] of bad)
    t.throws(() => tools[name]!.check(input), { message }, JSON.stringify(input))
})

t.test('Fetch returns the text of a page, describes other content, and fails with the error of the server', async t => {
  const { call } = place(t)
  const server = createServer(({ url, method }, response) => {
    if (url === '/latin')
      return response
        .writeHead(200, { 'content-type': 'text/plain; charset=latin1' })
        .end(Buffer.from('caf\xe9', 'latin1'))
    if (url === '/picture') return response.writeHead(200, { 'content-type': 'image/png' }).end('png')
    if (url === '/no') return response.writeHead(403).end('go away')
    if (url === '/odd') return response.writeHead(200, { 'content-type': 'text/plain; charset=nonsense' }).end('plain')
    return response.end(`${method} ${url}`)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  t.match(await call('Fetch', { url: `${url}/a` }), { ok: true, text: 'GET /a' })
  t.match(await call('Fetch', { url, method: 'POST', body: 'x', headers: { 'content-type': 'text/plain' } }), {
    ok: true,
    text: 'POST /',
  })
  t.match(await call('Fetch', { url: `${url}/latin` }), { ok: true, text: 'café' })
  t.match(await call('Fetch', { url: `${url}/odd` }), { ok: true, text: 'plain' })
  t.match(await call('Fetch', { url: `${url}/picture` }), { ok: true, text: '[3 bytes of image/png: no text]' })
  t.match(await call('Fetch', { url: `${url}/no` }), { ok: false, text: /^403 Forbidden from .*\ngo away$/ })
  t.match(await call('Fetch', { url }, { reach: async () => ({ near: false, listeners: [] }) }), {
    ok: false,
    text: /loopback/,
  })
})
