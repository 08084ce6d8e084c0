import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ModelSettings } from '../../../sdk/host.js'
import { entryOf, startFileServer, weightsOf } from '../../plugins/endpoints/weights.js'
import { until } from '../../support/browser/browser.js'
import { folderOf } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { llamaProgram } from '../../support/servers/llama-program.js'
import { startModelServer } from '../../plugins/endpoints/model-lists.js'
import { type RunOptions, sandbox } from './cli-process.js'

const KEY = 'key-of-the-lab-77'

/** The data folder of a daemon with these groups. */
const daemonOf = (t: Test, ...groups: string[]): Promise<string> => startedIn(t, folderOf(t), groups)

/** The same in a folder, with the deployment's settings of models. */
const startedIn = async (t: Test, folder: string, groups: string[], models?: ModelSettings): Promise<string> => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'model-daemon.js'), folder, ...groups], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...(models && { MODELS: JSON.stringify(models) }) },
  })
  const exited = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await exited
  })
  await Promise.race([once(child.stdout, 'data'), exited.then(() => Promise.reject(new Error('the daemon ended')))])
  return join(folder, 'data')
}

t.test('model servers are added, listed, tested and removed from the command line', async t => {
  const data = await daemonOf(t, 'endpoints')
  const server = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }], key: KEY })
  const model = (args: string[], options: RunOptions = {}) =>
    sandbox(['model', ...args], { env: { SANDBOX_DATA: data }, ...options })
  t.match(await model([]), { code: 0, out: /^no model servers; next: sandbox model add/ })
  t.match(await model(['add', 'lab', '--protocol', 'soap', '--url', server.url]), {
    code: 2,
    err: /expected model list/,
  })
  t.match(await model(['add', 'lab', '--protocol', 'openai']), { code: 2, err: /expected model list/ })
  t.match(await model(['add', 'lab', '--protocol', 'openai', '--url', server.url, '--key-stdin']), {
    code: 2,
    err: /expected the key on standard input, found nothing/,
  })
  t.match(await model(['add', 'lab', '--protocol', 'openai', '--url', server.url]), {
    code: 1,
    out: 'saved lab: refused, 0 models\nnext: sandbox model test lab\n',
    err: /^sandbox: .* asks for a key \(401\)/,
  })
  const added = await model(['add', 'lab', '--protocol', 'openai', '--url', server.url, '--key-stdin'], {
    input: `${KEY}\n`,
  })
  t.match(added, {
    code: 0,
    out: 'saved lab: ready, 1 model, default m\nnext: sandbox run "TEXT" --agent endpoint/lab\n',
  })
  t.match(await model(['list']), {
    code: 0,
    out: new RegExp(
      `^NAME +STATUS +MODELS +PROTOCOL +ADDRESS +DEFAULT +CHECKED\\nlab +ready +1 +openai +${server.url} +m +.*\\n$`,
    ),
  })
  t.match(JSON.parse((await model(['list', '--json'])).out), { endpoints: exactly({ id: 'lab', hasKey: true }) })
  t.match(await model(['test', 'lab']), { code: 0, out: /^works: 1 model, m answers in \d+ ms\n$/ })
  server.script.refusesTools = true
  t.match(await model(['test', 'lab', '--model', 'm']), { code: 0, out: /refuses tools, so it cannot drive a turn/ })
  await server.stop()
  t.match(await model(['test', 'lab']), { code: 1, out: /^does not work: 0 models\nnothing listens at/ })
  const anthropic = await startModelServer(t, { protocol: 'anthropic', models: [{ id: 'm' }] })
  await model(['add', 'other', '--protocol', 'ollama', '--url', anthropic.url])
  t.match(await model(['test', 'other']), { code: 1, out: /what works: --protocol (anthropic|openai)\n$/ })
  t.match(await model(['remove', 'lab']), { code: 0, out: 'removed lab\n' })
  t.match(await model(['test', 'lab']), { code: 5, err: /no model server lab/ })
  t.match(await model(['add', 'a b', '--protocol', 'openai', '--url', server.url]), { code: 2, err: /id/ })
})

t.test('a model that this machine runs is added, stopped, started and removed', async t => {
  const folder = folderOf(t)
  const bytes = weightsOf()
  const files = await startFileServer(t, bytes)
  const local = join(folder, 'models.json')
  writeFileSync(local, JSON.stringify([entryOf(files.url, bytes)]))
  const { program, missing } = llamaProgram(folder)
  const data = await startedIn(t, folder, ['endpoints'], { local, server: program })
  const model = (...args: string[]) => sandbox(['model', ...args], { env: { SANDBOX_DATA: data } })
  t.match(await model('fit'), {
    code: 0,
    out: /^a model may take [\d.]+ GiB.*\nMODEL +WEIGHTS +HERE +LARGEST WINDOW +NAME\nsmall +\S+ \S+ +no +16384 +Small/,
  })
  t.match(await model('add', 'own', '--local', 'custom', '--url', files.url, '--context', '100'), {
    code: 2,
    err: /context/,
  })
  t.match(await model('add', 'own', '--local', 'custom', '--url', files.url, '--context', 'all'), { code: 2 })
  t.match(await model('start', 'own'), { code: 2, err: /expected a model that this machine runs, found own/ })
  t.match(await model('add', 'own', '--local', 'custom', '--url', files.url, '--context', '1024'), {
    code: 0,
    out: /^saved own: (downloading|loading|ready)/,
  })
  let listed = ''
  await until(async () => (listed = (await model('list')).out).includes('ready'))
  t.match(listed, /own +ready +1 +openai +this machine/)
  t.match(await model('stop', 'own'), { code: 0, out: 'own: stopped\n' })
  t.match(await model('start', 'own'), { code: 0, out: /^own: (downloading|loading|ready)\n/ })
  t.match(await model('remove', 'own'), { code: 0, out: 'removed own\n' })
  missing()
  t.match(await model('add', 'own', '--local', 'small'), { code: 1, err: /install llama.cpp/ })
})

t.test('the models of turns are listed, usable ones first', async t => {
  const data = await daemonOf(t, 'endpoints', 'providers')
  const run = (...args: string[]) => sandbox(args, { env: { SANDBOX_DATA: data } })
  t.match(await run('models'), { code: 0, out: /^no model matches; sandbox models --all/ })
  const server = await startModelServer(t, { protocol: 'openai', models: [{ id: 'small' }, { id: 'large' }] })
  await run('model', 'add', 'desk', '--protocol', 'openai', '--url', server.url)
  t.match(await run('models'), {
    code: 0,
    out: /^AGENT +MODEL +WINDOW\nendpoint\/desk +small\s*\nendpoint\/desk +large\s*\n$/,
  })
  t.match(await run('models', 'LARGE'), { code: 0, out: /^AGENT.*\nendpoint\/desk +large\s*\n$/ })
  t.match(await run('models', '--limit', '1'), { code: 0, out: /small\s*\n1 model more/ })
  t.match(await run('models', '--all'), { code: 0, out: /NOT READY\nendpoint[^]*anthropic .* no account/ })
  t.match(await run('models', '--all', '--agent', 'openai'), { code: 0, out: /^AGENT.*\nopenai / })
  t.match(await run('models', '--limit', '0'), { code: 2, err: /expected a number from 1 to 500/ })
})
