import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { CardReply, Frame } from '../../plugins/agent/contract.js'
import type { ApplyFrame } from '../../plugins/capabilities/contract.js'
import { folderOf, makeWorkspace, spawnDaemon, type RunningDaemon } from '../support/daemon.js'
import { agentModel, type AgentModel, type Deed, wish } from '../support/servers/agent-model.js'
import { framesOf } from '../support/turns.js'
import { programFolder, type RealProgram } from './programs.js'

/** How a test answers the cards of a turn; a card of another kind stays unanswered. */
export type Answers = (card: Frame) => CardReply | undefined

export interface Turn {
  readonly frames: readonly Frame[]
  readonly end: Frame | undefined
}

/** The built daemon with one real program and the scripted model. */
export class ProgramWorld {
  readonly model: AgentModel
  readonly program: RealProgram
  readonly #t: Test
  readonly #folders: { readonly workspace: string; readonly data: string }
  #daemon: RunningDaemon | undefined
  /** What the program's connection said of each step. */
  connected: readonly ApplyFrame[] = []

  private constructor(t: Test, program: RealProgram, model: AgentModel) {
    this.#t = t
    this.program = program
    this.model = model
    const folder = folderOf(t)
    this.#folders = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
    mkdirSync(this.#folders.data, { mode: 0o700 })
    makeWorkspace(this.#folders.workspace, { 'README.md': '# work\n' })
  }

  /** Starts the daemon, and connects the program as a person does. */
  static async open(t: Test, program: RealProgram): Promise<ProgramWorld> {
    const world = new ProgramWorld(t, program, await agentModel(t))
    await world.start()
    const { client, model } = world
    await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
    await client.call('POST /settings/patch', { set: { networkAllow: [`localhost:${model.port}`] } })
    const env = Object.entries(program.env(model.address)).map(([name, value]) => `${name}=${value}`)
    const steps: ApplyFrame[] = []
    for await (const frame of await client.call('POST /capabilities', {
      id: program.id,
      kind: 'agent',
      config: { command: program.command, name: program.label, env: env.join('\n') },
    }))
      steps.push(frame)
    world.connected = steps
    return world
  }

  get client(): RunningDaemon['client'] {
    return this.#running.client
  }

  get workspace(): string {
    return this.#folders.workspace
  }

  copyOf(id: string): string {
    return join(this.#folders.data, 'agent/checkouts', id)
  }

  get stderr(): string {
    return this.#running.stderr()
  }

  async start(): Promise<void> {
    const { NODE_OPTIONS: _, ...env } = process.env
    this.#daemon = await spawnDaemon(this.#t, {
      ...this.#folders,
      env: { ...env, PATH: `${programFolder()}:${env.PATH}` },
    })
  }

  /** Kills the daemon as a power cut would, and starts it again. */
  async restart(): Promise<void> {
    await this.#running.kill9()
    await this.start()
  }

  /** Sends a message that has the model do something. */
  async send(conversationId: string, deeds: readonly Deed[], input: object = {}): Promise<void> {
    await this.client.call('POST /agent', {
      conversationId,
      agent: `agent/${this.program.id}`,
      ...(this.program.model && { model: this.program.model }),
      isolated: true,
      prompt: wish(...deeds),
      ...input,
    })
  }

  /** Follows a turn to its end and answers its cards. */
  async follow(conversationId: string, answers: Answers = () => undefined): Promise<Turn> {
    const watched = framesOf(this.client, conversationId)
    for (;;) {
      const frame = await watched.until(each => 'requestId' in each || each.kind === 'done')
      if (frame.kind === 'done') break
      const reply = frame.kind === 'resolved' ? undefined : answers(frame)
      if (reply) await this.client.call('POST /agent/reply', reply)
    }
    const frames = (await watched.all()).map(({ event }) => event)
    return { frames, end: frames.at(-1) }
  }

  /** Runs a turn to its end. */
  async turn(
    conversationId: string,
    deeds: readonly Deed[],
    { answers, ...input }: { answers?: Answers; [field: string]: unknown } = {},
  ): Promise<Turn> {
    await this.send(conversationId, deeds, input)
    return this.follow(conversationId, answers)
  }

  get #running(): RunningDaemon {
    if (!this.#daemon) throw new Error('the daemon was not started')
    return this.#daemon
  }
}

/** Allows or refuses every permission. */
export const permits =
  (decision: 'once' | 'deny'): Answers =>
  frame =>
    frame.kind === 'permission' ? { kind: 'permission', requestId: frame.requestId, decision } : undefined
