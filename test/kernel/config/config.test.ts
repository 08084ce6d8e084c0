import { mkdirSync, realpathSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readConfig } from '../../../kernel/config/config.js'

t.test('flags override the environment, and the environment overrides defaults', async t => {
  const workspace = realpathSync(t.testdir())
  const env = { SANDBOX_WORKSPACE: workspace, SANDBOX_PORT: '9000', XDG_STATE_HOME: '/state' }
  t.match(readConfig([], env), {
    workspace,
    port: 9000,
    host: '127.0.0.1',
    json: false,
    needsWall: true,
    data: /^\/state\/sandbox\/[0-9a-f]{16}$/,
  })
  t.match(readConfig(['--port', '0', '--data', '/elsewhere', '--json'], env), {
    port: 0,
    data: '/elsewhere',
    store: 'sqlite:///elsewhere/store.sqlite',
    json: true,
    needsWall: true,
  })
})

t.test('a mistake is one message that names it', async t => {
  const folder = realpathSync(
    t.testdir({
      file: '',
      'bad.json': '{',
      'wrong.json': '{"identity":{"claim":"maybe"}}',
      'limits.json': '{"wall":{"limits":{"memory":"lots"}}}',
    }),
  )
  const fails = (args: string[], message: RegExp) => t.throws(() => readConfig(args, {}), { message }, args.join(' '))
  fails(['--workspace', join(folder, 'none')], /cannot be read: ENOENT/)
  fails(['--workspace', join(folder, 'file')], /is not a folder/)
  fails(['--workspace', folder, '--data', join(folder, 'data')], /is inside the workspace/)
  mkdirSync(join(folder, 'two\nlines'))
  fails(['--workspace', join(folder, 'two\nlines')], /^the workspace ".*two\\nlines" has a line break or .*: choose/)
  fails(['--workspace', folder, '--data', '/d\td'], /^the data folder "\/d\\td" has a line break/)
  fails(['--workspace', folder, '--port', 'http'], /--port expects a number from 0 to 65535, found http/)
  fails(['--workspace', folder, '--port', '65536'], /found 65536/)
  fails(['--nonsense'], /--nonsense/)
  fails(['--workspace', folder, '--data', '/d', '--config', join(folder, 'bad.json')], /is not JSON/)
  fails(['--workspace', folder, '--data', '/d', '--config', join(folder, 'wrong.json')], /identity\.claim: expected/)
  fails(
    ['--workspace', folder, '--data', '/d', '--config', join(folder, 'limits.json')],
    /wall\.limits\.memory: expected/,
  )
})

t.test('a data folder behind a link is named by its real path', async t => {
  const folder = realpathSync(t.testdir({ real: {}, workspace: {}, link: t.fixture('symlink', 'real') }))
  const dataOf = (data: string) => readConfig(['--workspace', join(folder, 'workspace'), '--data', data], {}).data
  t.equal(dataOf(join(folder, 'link')), join(folder, 'real'))
  t.equal(dataOf(join(folder, 'link/new/data')), join(folder, 'real/new/data'))
  mkdirSync(join(folder, 'inside'))
  symlinkSync(join(folder, 'workspace'), join(folder, 'inside/link'))
  t.throws(() => dataOf(join(folder, 'inside/link/data')), { message: /is inside the workspace/ })
})

t.test('the same workspace has the same data folder, by any path', async t => {
  const folder = realpathSync(t.testdir({ real: {}, link: t.fixture('symlink', 'real') }))
  const data = (name: string) => readConfig(['--workspace', join(folder, name)], {}).data
  t.equal(data('link'), data('real'))
  mkdirSync(join(folder, 'other'))
  t.not(data('other'), data('real'))
})
