import { globSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { folderOf } from './support/daemon.js'
import { modelServer, type ScriptedReply } from './support/servers/model-server.js'
import { noOpencode as skip, OPENCODE } from './support/peers.js'
import { shell, shownIn } from './support/browser/page.js'
import { agentGuides } from './support/guides.js'

/** What a chat-completions server is asked. */
interface Asked {
  readonly messages: readonly { readonly role: string }[]
  readonly tools?: readonly { readonly function: { readonly name: string } }[]
}

/** A model that lists the folder for the sandbox's own loop, and runs a command for a program that has a shell. */
const model = ({ text, path }: { text: string; path: string }): ScriptedReply => {
  if (!path.includes('chat')) return { status: 200, body: '{"data":[{"id":"qwen3"}]}' }
  const { messages, tools = [] } = JSON.parse(text) as Asked
  const program = tools.some(({ function: { name } }) => name === 'bash')
  if (messages.at(-1)?.role === 'tool' || tools.length === 0)
    return program || tools.length === 0
      ? { text: ['It is fixed.'], usage: { input: 105, output: 7 } }
      : { text: ['It is a sample.'], usage: { input: 100, output: 7 } }
  return program
    ? {
        calls: [{ name: 'bash', input: { command: 'echo fixed > fixed.txt', description: 'Fixes the test' } }],
        usage: { input: 90, output: 7 },
      }
    : { calls: [{ name: 'List', input: {} }], usage: { input: 90, output: 7 } }
}

t.setTimeout(300_000)

t.test('a model server and an agent program of the reader work as the guides show', { skip }, async t => {
  const state = folderOf(t)
  const server = await modelServer(t, 'openai', model)
  const { port } = new URL(server.target().baseUrl)
  const env: NodeJS.ProcessEnv = { ...process.env, XDG_STATE_HOME: state, SANDBOX_PORT: '0', NO_COLOR: '1' }
  // As an installed program is; npm's own folder of programs is not for turns.
  mkdirSync(join(state, 'bin'))
  symlinkSync(OPENCODE!, join(state, 'bin/opencode'))
  env.PATH = `${join(state, 'bin')}:${env.PATH}`
  for (const name of ['SANDBOX_URL', 'SANDBOX_TOKEN', 'SANDBOX_DATA', 'SANDBOX_WORKSPACE']) delete env[name]
  const { run, start } = shell(t, env)
  const said = await start('npm start', /npm start -- --workspace/)
  env.SANDBOX_URL = /http:\/\/127\.0\.0\.1:\d+/.exec(said)![0]
  const shown = agentGuides.flatMap(({ text }) => shownIn(text))
  t.ok(shown.length >= 7, `${shown.length} commands`)
  for (const { command, prints } of shown) {
    const { code, out } = await run(command.replaceAll(':11434', `:${port}`))
    t.equal(code, 0, `${command}\n${out}`)
    if (prints !== undefined) t.equal(plain(out.replaceAll(`:${port}`, ':11434')), plain(prints), command)
    if (command.includes('agent add')) configure(state, port)
  }
})

/** Without what differs from run to run: seconds, and the lines that a slow start prints. */
const plain = (text: string): string =>
  text.replace(/\d+\.\d s$/gm, '0.0 s').replace(/^.* has not (?:answered|opened a session) after .*\n/gm, '')

/** The reader's own settings of the program, which it finds in its home folder. */
const configure = (state: string, port: string): void => {
  const [home] = globSync(join(state, '**/homes/programs/opencode/home'))
  const folder = join(home!, '.config/opencode')
  mkdirSync(folder, { recursive: true })
  const options = { baseURL: `http://127.0.0.1:${port}/v1`, apiKey: 'none' }
  const limit = { context: 128_000, output: 8_000 }
  const local = {
    npm: '@ai-sdk/openai-compatible',
    name: 'Local',
    options,
    models: { qwen3: { name: 'Qwen 3', limit } },
  }
  writeFileSync(join(folder, 'opencode.json'), JSON.stringify({ model: 'local/qwen3', provider: { local } }))
}
