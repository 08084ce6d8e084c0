import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type {
  GatedCall,
  Permission,
  TreeCommand,
  TurnIo,
  TurnRequest,
} from '../../../../plugins/agent/providers/adapter.js'
import type { Frame } from '../../../../plugins/agent/contract.js'
import { Peers, type WaitingLimits } from '../../../../plugins/agent/providers/acp/peers.js'
import type { AgentProgram } from '../../../../plugins/agent/providers/acp/program.js'
import { ToolServers } from '../../../../plugins/agent/tool-server/tool-servers.js'
import { acpOn } from '../../../../plugins/agent/providers/acp/turn.js'
import { listEnv } from '../../../../sdk/node/programs/run.js'
import { folderOf } from '../../../support/daemon.js'

/** The beginning of every program: a hand-written client, so that it can break every rule. */
const PEER = `
import { createInterface } from 'node:readline'
let last = 1000
const waiting = new Map()
const send = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const ask = (method, params) => new Promise(resolve => {
  waiting.set(++last, resolve)
  send({ id: last, method, params: { sessionId: 's-1', ...params } })
})
const update = update => send({ method: 'session/update', params: { sessionId: 's-1', update } })
const say = text => update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })
`
const LOOP = `
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line)
  const { id, method } = message
  if (method === undefined) waiting.get(id)?.(message)
  else if (method === 'initialize') send({ id, result: { protocolVersion: 1, agentCapabilities: capabilities } })
  else if (method === 'session/new' || method === 'session/load') send({ id, result: { sessionId: 's-1' } })
  else if (method === 'session/prompt') void prompt(message.params.prompt).then(result => send({ id, ...result }))
}
`
/** A program that follows the protocol except for its reaction to a prompt. */
export const agent = (prompt: string, capabilities = '{}'): string =>
  `${PEER}const capabilities = ${capabilities}\nconst prompt = async words => { ${prompt}\nreturn { result: { `
  + `stopReason: 'end_turn' } } }\n${LOOP}`

/** A tool server whose failure fails the test. */
export const toolServers = (): ToolServers =>
  new ToolServers({
    error: message => {
      throw new Error(message)
    },
  })

export interface World {
  /** Runs a turn and returns its frames; `heard` is called with each frame as it arrives. */
  turn(request?: Partial<TurnRequest>, heard?: (frame: Frame) => void): Promise<Frame[]>
  readonly root: string
  readonly gated: GatedCall[]
  readonly raised: unknown[]
  readonly titles: string[]
  readonly peers: Peers
  readonly stop: AbortController
}

/** A turn in a program with the given source, without an engine: the test decides for the gate. */
export const world = (
  t: Test,
  source: string,
  {
    permit = async () => ({ allow: true }),
    patience = {},
    label = 'the program',
    waiting,
  }: {
    permit?: (call: GatedCall) => Promise<Permission>
    patience?: object
    label?: string
    waiting?: WaitingLimits
  } = {},
): World => {
  const folder = folderOf(t)
  const root = join(folder, 'tree')
  mkdirSync(root, { recursive: true })
  writeFileSync(join(folder, 'agent.mjs'), source)
  const times = { slowMs: 20_000, quietMs: 20_000, sessionMs: 20_000, silenceMs: 20_000, cancelMs: 500, ...patience }
  const peers = new Peers(times, waiting)
  t.teardown(() => peers.close())
  const [gated, raised, stop]: [GatedCall[], unknown[], AbortController] = [[], [], new AbortController()]
  const titles: string[] = []
  const walled = async ({ program, args, cwd = '', env }: Parameters<TurnIo['walled']>[0]): Promise<TreeCommand> => ({
    program,
    args: [...args],
    env: listEnv(env),
    cwd: join(root, cwd),
    enforced: false,
    root,
    seen: { root, cwd: join(root, cwd) },
    begun: () => () => {},
  })
  const never = async () => Promise.reject(new Error('not here'))
  const io: TurnIo = {
    signal: stop.signal,
    walled,
    shared: async () => undefined,
    offered: async () => [],
    expose: async () => 'http://127.0.0.1:1',
    gap: async () => false,
    takeWords: () => [],
    waitWords: async () => undefined,
    tool: never,
    helper: never,
    stamp: never,
    state: never,
    permit: async call => {
      gated.push(call)
      return permit(call)
    },
    raise: async draft => void raised.push(draft),
    mode: mode => void raised.push(mode),
    title: text => void titles.push(text),
  }
  const program: AgentProgram = { label, command: [process.execPath, join(folder, 'agent.mjs')], install: 'write it' }
  const turn = async (request: Partial<TurnRequest> = {}, heard: (frame: Frame) => void = () => {}) => {
    const whole: TurnRequest = {
      conversationId: 'c',
      run: 'r',
      attempt: 1,
      prompt: 'go',
      words: 'go',
      attachments: [],
      mentions: [],
      harness: 'vendor-code',
      model: 'one',
      permissionMode: 'default',
      attended: true,
      depth: 0,
      helpers: { atOnce: 0, perTurn: 0, depth: 0 },
      ...request,
    }
    const frames: Frame[] = []
    for await (const frame of acpOn(peers, toolServers())('test', program, whole, io)) {
      heard(frame)
      frames.push(frame)
    }
    return frames
  }
  return { turn, root, gated, raised, titles, peers, stop }
}

export const failure = (frames: readonly Frame[]) => frames.find(frame => frame.kind === 'error')
export const prose = (frames: readonly Frame[]): string =>
  frames.map(frame => (frame.kind === 'delta' ? frame.text : frame.kind === 'text_end' ? '|' : '')).join('')
