// The package as people get it: packed, installed by an ordinary user without a compiler, used from an empty folder.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { setTimeout as delay } from 'node:timers/promises'
import { STARTER } from '../plugins/agent/starter-program.js'
import { wallKind } from '../../sdk/node/wall/wall.js'
import { project, shownIn } from '../support/browser/page.js'
import { guides } from '../support/guides.js'
import { noPackageBefore, packBefore, packInto } from './package-before.js'
import { ordinaryPlace } from './place.js'
import { registry } from './registry.js'

const manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as {
  version: string
}
const [PACKAGE, BEFORE] = [`~/sandbox-daemon-${manifest.version}.tgz`, '~/before/sandbox-daemon-*.tgz']
const INSTALL = 'npm install --global'
const noWall = (await wallKind()) === 'none' ? 'this machine has no wall' : false

t.setTimeout(600_000)

const place = ordinaryPlace(t, await registry(t))
const { home, folder } = place

/** What a command prints; it has to succeed. */
const prints = async (command: string, cwd = folder): Promise<string> => {
  const { code, out } = await place.run(command, cwd)
  if (code !== 0) throw new Error(`${command}\nended with ${code}:\n${out}`)
  return out
}

const work = join(home, 'code')
let daemon: ReturnType<typeof place.start>
let url: string
const FIRST =
  "mkdir ~/code && cd ~/code && git init -q -b main && echo '# Code' > README.md && git add . && git commit -qm first"
/** A repository of the user, made once. */
const makeWork = (): Promise<string> => prints(`[ -d ~/code ] || { ${FIRST}; }`)

const readIfThere = (path: string): string => {
  try {
    return readFileSync(path, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

const answerOf = async (address: string, headers = {}): Promise<string> => (await fetch(address, { headers })).text()

/** A shell command that waits until another succeeds, at most 20 s, and fails with what the last one prints. */
const patiently = (holds: string, shown: string): string =>
  `for turn in $(seq 100); do ${holds} && exit 0; sleep 0.2; done; ${shown}; exit 1`

t.test('the user has an empty home folder and no compiler', async t => {
  t.same(globSync('**/*', { cwd: home }), ['work'])
  for (const compiler of ['cc', 'gcc', 'g++', 'make', 'python3'])
    t.match(await place.run(`${compiler} --version`), { code: 127 }, compiler)
  t.match(await place.run('test -w / || test -w /usr'), { code: 1 })
  t.match(await place.run('node --version && git --version && npm --version'), { code: 0 })
})

t.test('the package of the commit before installs and is used', { skip: noPackageBefore() }, async t => {
  place.give('before/README', '')
  await packBefore(join(home, 'before'))
  await prints(`${INSTALL} ${BEFORE}`)
  await makeWork()
  daemon = place.start('sandbox serve --port 0', work)
  await daemon.until(/ready at/)
  await prints("sandbox run 'write early.md\n| # Early' --conversation early", work)
  await prints('sandbox rename early "Before the upgrade"', work)
  t.not((await daemon.end()).code, null)
})

t.test('the package installs', async t => {
  await packInto(project, home)
  t.match(await prints(`${INSTALL} ${PACKAGE}`), /^(?:added|changed) \d+ packages/m)
  t.equal(await prints('sandbox --version'), `${manifest.version}\n`)
  t.match(await prints('sandbox --help'), /^usage: sandbox VERB/m)
  t.match(await place.run('sandbox agents'), { code: 3, out: /sandbox serve/ }, 'it says how a daemon is started')
})

t.test('the demonstration is landed, and ends with Ctrl-C', async t => {
  const sample = place.start('sandbox serve --sample --port 0')
  await sample.until(/\nlanded: 1 file is in the workspace/)
  const [, address = ''] = await sample.until(/^ +(http:\/\/127\.0\.0\.1:\d+)\/reference$/m)
  t.match(await answerOf(`${address}/health`), /"ok":true/)
  t.match(await answerOf(`${address}/`), /<title>/)
  const { code, out } = await sample.end()
  t.ok(code === 0 || code === 130, `it ends with ${code}`)
  t.notMatch(out, /^\{|the daemon logs/m, 'it prints words')
  t.notMatch(out, /npx|npm start/, 'it prints the command as it is installed')
})

t.test('every command of the README and the guides works in an installed program', async t => {
  const sample = place.start('sandbox serve --sample --port 0')
  const [, address = ''] = await sample.until(/^ +(http:\/\/127\.0\.0\.1:\d+)\/reference$/m)
  const workspace = join(home, '.local/state/sandbox/sample/workspace')
  let token = ''
  const run = async (command: string) => {
    const lines = [`export SANDBOX_URL=${address} TOKEN='${token}'`, 'set -e', command, `printf '\\001%s' "$TOKEN"`]
    const { code, out, stdout } = await place.run(lines.join('\n'), workspace)
    const [printed = '', next = token] = stdout.split('\u0001')
    token = next
    return { code, out: code === 0 ? printed : out }
  }
  const installed = (text: string) => text.replaceAll('npx sandbox', 'sandbox')
  const shown = guides.flatMap(({ path, text }) => shownIn(text).map(each => ({ ...each, path })))
  // Those of npm are for the sources.
  const noCurl = (await place.run('curl --version')).code === 0 ? false : 'this machine has no curl'
  const ofProgram = shown.filter(({ command }) => !/^npm /.test(command))
  t.ok(ofProgram.length >= 90, `${ofProgram.length} commands`)
  for (const { path, command, prints: shows } of ofProgram) {
    // The demonstration asks a question; without a terminal here, another client answers it.
    const asks = command.includes('"/demo"')
    if (noCurl && /\bcurl\b/.test(command)) {
      t.pass(`${path}: ${command}`, { skip: noCurl })
      continue
    }
    const line = installed(command).replaceAll('http://127.0.0.1:8787', address) + (asks ? ' --timeout 2m' : '')
    const running = run(line)
    if (asks) while ((await place.run(`SANDBOX_URL=${address} sandbox answer first 1`)).code !== 0) await delay(200)
    const { code, out } = await running
    t.equal(code, 0, `${path}: ${line}${code === 0 ? '' : `\n${out}`}`)
    if (shows !== undefined) t.equal(out, installed(shows), `${path}: ${line}: what the page shows`)
  }
  const { code } = await sample.end()
  t.ok(code === 0 || code === 130, `it ends with ${code}`)
})

t.test('a daemon serves a folder of the user', async t => {
  await makeWork()
  daemon = place.start('sandbox serve --port 0', work)
  ;[, url = ''] = await daemon.until(/ready at (http:\/\/127\.0\.0\.1:\d+)/)
  t.match(await prints('sandbox agents', work), /sandbox run|early/)
})

t.test('what was done before the upgrade goes on', { skip: noPackageBefore() }, async t => {
  t.match(await prints('sandbox agents', work), /Before the upgrade/)
  t.match(await prints('sandbox transcript early', work), /early\.md/)
  t.match(await prints('sandbox diff early', work), /A early\.md +\+1 -0\n/)
  t.match(await prints('sandbox land early', work), /^landed: 1 file/)
  t.equal(readFileSync(join(work, 'early.md'), 'utf8'), '# Early\n')
})

t.test('a turn is run, reviewed and landed', async t => {
  const out = await prints(`sandbox run 'write notes.md\n| # Notes\nrun wc -l notes.md' --conversation notes`, work)
  t.match(out, /✓ Write notes\.md[^]*✓ Shell wc -l notes\.md\n {2}1 notes\.md\n[^]*\ndone\n/)
  t.match(out, /next: sandbox diff notes {2}or {2}sandbox land notes\n$/)
  t.match(await prints('sandbox diff notes', work), /A notes\.md +\+1 -0\n/)
  t.notOk(existsSync(join(work, 'notes.md')))
  t.match(await prints('sandbox land notes', work), /^landed: 1 file/)
  t.equal(readFileSync(join(work, 'notes.md'), 'utf8'), '# Notes\n')
})

/** Writes requests to a program of this package, each after the answer to the one before, and prints the answers. */
const SPEAKER = `import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
const [, , verb, ...requests] = process.argv
const child = spawn('sandbox', [verb], { stdio: ['pipe', 'pipe', 'inherit'] })
let session = ''
const next = () => {
  const request = requests.shift()
  if (request === undefined) child.stdin.end()
  else child.stdin.write(request.replaceAll('SESSION', session) + '\\n')
}
next()
for await (const line of createInterface({ input: child.stdout })) {
  console.log(line)
  const { id, result, method } = JSON.parse(line)
  session ||= result?.sessionId ?? ''
  if (id !== undefined && method === undefined) next()
}
`

/** What a program of this package answers to these requests, one line each. */
const spoken = (verb: string, requests: readonly { method: string; params: object }[]): Promise<string> => {
  const lines = requests.map((request, id) => `'${JSON.stringify({ jsonrpc: '2.0', id, ...request })}'`)
  return prints(`node ~/speak.mjs ${verb} ${lines.join(' ')}`, work)
}

t.test('an editor and an assistant of the user work through it', async t => {
  place.give('speak.mjs', SPEAKER)
  const prompt = (text: string) => ({
    method: 'session/prompt',
    params: { sessionId: 'SESSION', prompt: [{ type: 'text', text }] },
  })
  const editor = await spoken('acp', [
    { method: 'initialize', params: { protocolVersion: 1 } },
    { method: 'session/new', params: { cwd: work, mcpServers: [] } },
    prompt('write edited.md\n| # Edited\nsay from the editor'),
    prompt('/land'),
    { method: 'session/list', params: { cwd: work } },
  ])
  t.match(editor, /from the editor[^]*"stopReason":"end_turn"[^]*landed: 1 file[^]*"sessions":\[\{"sessionId":"c-/)
  t.equal(readFileSync(join(work, 'edited.md'), 'utf8'), '# Edited\n')
  const clientInfo = { name: 'test', version: '1' }
  const call = (name: string, args: object) => ({ method: 'tools/call', params: { name, arguments: args } })
  const assistant = await spoken('mcp', [
    { method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo } },
    call('run', { conversation: 'assisted', prompt: 'say from the assistant' }),
    call('wait', { conversation: 'assisted' }),
  ])
  t.match(assistant, /from the assistant/)
})

t.test('an agent program of the user calls the tools of the sandbox', { skip: noWall }, async t => {
  place.give('.local/bin/starter', `#!/usr/bin/env node\n${STARTER}`, 0o755)
  t.match(await prints('sandbox agent add starter --command starter', work), /connected starter; next: sandbox run/)
  const out = await prints(`sandbox run go --agent agent/starter --conversation tools`, work)
  t.match(out, /^Ask Browser .*Delegate .*Todo.*\n[^]*; false text\n/m)
})

const extensions = join(work, '.sandbox/config/workspace-extensions')

t.test('a new extension runs, and its own check and test pass', async t => {
  const out = await prints('sandbox extension create ada hello', work)
  t.match(
    out,
    /^made ada\.hello in .*workspace-extensions\/hello\nnext: edit server\.ts there, then sandbox extension\n$/,
  )
  const own = join(extensions, 'hello')
  const answers = async (fits: RegExp) => {
    const token = (await prints('sandbox token create --label hello --scope read', work)).trim()
    const ask = () => answerOf(`${url}/x/ada.hello/hello`, { 'x-sandbox-control': token })
    for (let times = 0; times < 100 && !fits.test(await ask()); times++) await delay(200)
    t.match(await ask(), fits)
  }
  await answers(/Hello from ada.hello/)
  const commands = shownIn(readFileSync(join(own, 'README.md'), 'utf8'))
  t.same(commands.slice(1), [{ command: 'npm run check' }, { command: 'npm test' }])
  for (const { command } of commands) await prints(command, own)

  const wrong = readFileSync(join(own, 'server.ts'), 'utf8').replace("'GET /hello'", '42')
  place.give('code/.sandbox/config/workspace-extensions/hello/server.ts', wrong)
  t.match(await place.run('npm run check', own), { code: 2, out: /server\.ts.*not assignable/ }, 'the check can fail')

  place.give('code/.sandbox/config/workspace-extensions/hello/server.ts', wrong.replace('42', "'GET /hello'"))
  const parsed = JSON.parse(readFileSync(join(own, 'intentic-extension.json'), 'utf8')) as object
  const asking = { ...parsed, permissions: { daemon: ['GET /agents'] } }
  place.give('code/.sandbox/config/workspace-extensions/hello/intentic-extension.json', JSON.stringify(asking))
  await answers(/approv/)
  t.match(await prints('sandbox extension review ada.hello', work), /\+ calls GET \/agents of the sandbox\n/)
  t.equal(await prints('sandbox extension approve ada.hello --yes', work), 'approved ada.hello\n')
  await answers(/Hello from ada.hello/)
})

t.test('the examples of the package run as they are copied', async t => {
  const examples = join(home, '.local/lib/node_modules/sandbox-daemon/sdk/examples')
  const names = globSync('*', { cwd: examples }).sort()
  t.same(names, ['build-alerts', 'failed-turns', 'font-names', 'glossary', 'open-tasks', 'palettes', 'team-kit'])
  await prints(`cp -r ${examples}/* ${extensions}/`)
  for (const name of names) {
    const review = `sandbox extension review examples.${name}`
    await prints(patiently(`${review} 2>&1 | grep --silent 'waits for approval'`, review), work)
    t.equal(await prints(`sandbox extension approve examples.${name} --yes`, work), `approved examples.${name}\n`)
  }
  const all = `[ "$(sandbox extension | grep -cE '^examples\\..* (running|on)$')" = ${names.length} ]`
  await prints(patiently(all, 'sandbox extension'), work)
  const listed = await prints('sandbox extension', work)
  for (const name of names) {
    const state = existsSync(join(examples, name, 'server.ts')) ? 'running' : 'on'
    t.match(listed, new RegExp(`^examples\\.${name} .* ${state}$`, 'm'), name)
  }
})

t.test('the service file starts the daemon', async t => {
  const unit = await prints('sandbox service install --print', work)
  const [, words = ''] = /^ExecStart=:?(.*)$/m.exec(unit) ?? []
  t.match(words, /"[^"]*node" "[^"]*\/sandbox-daemon\/dist\/bundle\/kernel\/main\.js"/)
  await daemon.end()
  daemon = place.start(`${words} --port=0`, home)
  ;[, url = ''] = await daemon.until(/ready at (http:\/\/127\.0\.0\.1:\d+)/)
  t.match(await prints('sandbox agents', work), /notes/)
})

t.test('a program that goes back says that its data is newer', async t => {
  const { code } = await daemon.end()
  t.ok(code === 0 || code === 130, `it ends with ${code}`)
  const newer = `'{"format":99,"version":"9.0.0"}'`
  await prints(`for note in ~/.local/state/sandbox/*/format.json; do echo ${newer} > "$note"; done`)
  t.match(await place.run('sandbox serve --port 0', work), {
    code: 1,
    out: /^sandbox: the data folder .* was written by sandbox 9\.0\.0, which is newer than this one[^\n]*\n$/,
  })
})

t.test('nothing is left after it is removed', async t => {
  await prints('npm uninstall --global sandbox-daemon')
  t.match(await place.run('command -v sandbox'), { code: 1, out: '' })
  t.same(globSync('**/*sandbox*', { cwd: join(home, '.local/lib') }), [])
  t.equal(readFileSync(join(work, 'notes.md'), 'utf8'), '# Notes\n', 'the work stays')
  const left = globSync('/proc/[0-9]*/cmdline').map(readIfThere)
  t.same(
    left.filter(command => command.includes(home)),
    [],
    'no process goes on',
  )
})
