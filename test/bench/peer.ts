// A turn that writes one file of a large repository, in a private copy, against a turn of OpenCode that writes it
// without one: `node dist/test/bench/peer.js [files]`. Both ask the same model server.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { spawnDaemon } from '../support/daemon.js'
import { OPENCODE } from '../support/peers.js'
import { ModelServer, type ScriptedReply, type SeenRequest } from '../support/servers/model-server.js'
import { runTurn } from '../support/turns.js'
import { makeRepository, nameOf } from './large-repository.js'
import { asked, inTurns, median, ms, print, quick, ratio, timed, verdict, x } from './measure.js'

const FILES = asked.length > 0 ? Number(asked[0]) : quick ? 300 : 50_000
const ROUNDS = quick ? 1 : 9

const top = realpathSync(mkdtempSync(join(tmpdir(), 'bench-peer-')))
const endings: (() => unknown)[] = []
const until = { teardown: (ending: unknown) => void endings.push(ending as () => unknown) }

interface Offered {
  readonly function: { readonly name: string; readonly parameters?: { readonly properties?: object } }
}

let edited = 0
/** Writes a file with the tool that the program has for it, and then says that it did. */
const reply = ({ text }: SeenRequest): ScriptedReply => {
  if (!text) return { status: 200, body: '{"data":[{"id":"m"}]}' }
  const { messages, tools = [] } = JSON.parse(text) as { messages: { role: string }[]; tools?: Offered[] }
  const write = tools.find(tool => /^write$/i.test(tool.function.name))?.function
  if (!write || messages.at(-1)?.role === 'tool') return { text: ['done'] }
  const path = Object.keys(write.parameters?.properties ?? {}).find(name => /path/i.test(name))!
  const file = join(prompted(text), nameOf(1))
  const body = { [path]: file, content: `export const edited = ${++edited}\n` }
  return { calls: [{ name: write.name, input: body }] }
}

/** The folder that the prompt names. */
const prompted = (text: string): string => /folder=([^\s"\\]*)/.exec(text)?.[1] ?? ''

const startPeer = async (program: string, folder: string, server: string) => {
  const home = join(top, 'peer-home')
  mkdirSync(home)
  const config = {
    permission: 'allow',
    provider: {
      local: {
        npm: '@ai-sdk/openai-compatible',
        options: { baseURL: `${server}/v1`, apiKey: 'k' },
        models: { m: { name: 'M' } },
      },
    },
  }
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    OPENCODE_CONFIG_CONTENT: JSON.stringify(config),
    OPENCODE_DISABLE_MODELS_FETCH: 'true',
    OPENCODE_DISABLE_AUTOUPDATE: 'true',
  }
  const child = spawn(program, ['serve', '--port', '0', '--hostname', '127.0.0.1'], { cwd: folder, env })
  endings.push(() => child.kill())
  for await (const line of createInterface(child.stdout)) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0]
    if (url) return url
  }
  throw new Error(`the peer ended with ${(await once(child, 'exit'))[0]}`)
}

const posted = async (url: string, body: object): Promise<{ readonly id: string }> => {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`)
  return (await answer.json()) as { id: string }
}

const measure = async (program: string): Promise<void> => {
  const [ours, theirs] = [join(top, 'ours'), join(top, 'theirs')]
  for (const folder of [ours, theirs]) makeRepository(folder, FILES)
  const models = await new ModelServer('openai', reply).listen(until)
  const data = join(top, 'data')
  mkdirSync(data, { mode: 0o700 })
  const { client } = await spawnDaemon(until, { workspace: ours, data })
  await client.call('POST /endpoints', { id: 'e', kind: 'server', protocol: 'openai', baseUrl: models.address })
  const peer = await startPeer(program, theirs, models.address)
  const session = await posted(`${peer}/session`, {})
  const copy = join(data, 'agent/checkouts/apart')
  const works = {
    apart: () =>
      timed(async () => {
        const frames = await runTurn(client, 'apart', `folder=${copy}`, {
          ...{ agent: 'endpoint/e', model: 'm', isolated: true, permissionMode: 'bypassPermissions' },
        })
        if (!frames.some(({ kind }) => kind === 'tool_call')) throw new Error(JSON.stringify(frames.slice(-4)))
      }),
    peer: () =>
      timed(() =>
        posted(`${peer}/session/${session.id}/message`, {
          model: { providerID: 'local', modelID: 'm' },
          parts: [{ type: 'text', text: `folder=${theirs}` }],
        }),
      ),
  }
  for (const work of Object.values(works)) await work()
  const before = edited
  const times = await inTurns(works, ROUNDS)
  if (edited !== before + 2 * ROUNDS) throw new Error(`${edited - before} files were written`)
  print(`OpenCode without a private copy, ${FILES} files (baseline)`, ms(median(times.peer)))
  print(`the same in a private copy, ${FILES} files`, ms(median(times.apart)))
  verdict('peer: a turn in a private copy to one without of OpenCode', ratio(times.apart, times.peer), {
    most: 0.3,
    as: x,
  })
}

try {
  if (OPENCODE) await measure(OPENCODE)
  else print('OpenCode is not installed', '-')
} finally {
  for (const ending of endings.toReversed()) await ending()
  rmSync(top, { recursive: true, force: true })
}
process.exit(0)
