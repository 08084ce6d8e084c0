import { once } from 'node:events'
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { Refusal } from '../../../sdk/refusal.js'
import { folderOf, inGit, makeWorkspace, spawnDaemon, type RunningDaemon } from '../../support/daemon.js'
import { Dice } from './dice.js'
import { count, Driver, replyTo, send, type World } from './driver.js'
import { fateFaults, imageOf, type Found } from './image.js'
import type { Counts } from './floors.js'
import { keep } from './kept.js'
import { lineFaults, recordFaults, type Conversation } from './model.js'
import { Moment } from './moment.js'
import { leftProcesses } from './processes.js'
import { Office } from './office.js'
import { Streams } from './streams.js'
import { copyOf, filesIn, landingFaults, leftovers, NOTHING, repositoryFaults, type Place } from './whole.js'

/** The options of a lane. */
export interface LaneOptions {
  readonly name: string
  readonly seed: number
  readonly kills: number
  /** How many clients work at once. */
  readonly drivers: number
}

const STARTS_MS = 60_000
const PERSON = { 'mine.txt': 'committed\nand changed\n', 'staged.txt': 'staged\n', 'loose.txt': 'nobody knows it\n' }

/** One workspace and its data, whose daemon is killed repeatedly under load. */
export class Lane {
  readonly #t: Test
  readonly #place: Place
  readonly #dice: Dice
  readonly #world: World
  readonly #drivers: Driver[]
  readonly #office: Office
  readonly #kills: number
  readonly #name: string
  #found: Found[] = []
  #killed = 0

  constructor(t: Test, { name, seed, kills, drivers }: LaneOptions) {
    const folder = folderOf(t)
    this.#t = t
    this.#place = { folder, workspace: join(folder, 'workspace'), data: join(folder, 'data') }
    this.#dice = new Dice(seed)
    this.#kills = kills
    this.#name = `${seed}-${name}`
    this.#world = {
      conversations: [],
      streams: new Streams(),
      faults: [],
      mark: `3571.${process.pid}${name.charCodeAt(0)}`,
      counts: new Map(),
      why: () => lastFailure(join(folder, 'data')),
    }
    this.#drivers = Array.from(
      { length: drivers },
      (_, index) => new Driver(this.#world, new Dice(seed * 7 + index + 1), `${name}${'xyz'[index]}`),
    )
    this.#office = new Office(this.#place, this.#world, new Dice(seed * 11 + 5))
    const { workspace } = this.#place
    makeWorkspace(workspace, {
      '.sandbox/config/settings.json': '{"autoResumeOnRestart":true}\n',
      'README.md': '# work\n',
      'main.txt': '0\n',
      'mine.txt': 'committed\n',
    })
    for (const [file, text] of Object.entries(PERSON)) writeFileSync(join(workspace, file), text)
    inGit(workspace, 'add', 'staged.txt')
  }

  /**
   * Kills the given number of times, lets all work end, and returns the faults and the folder with the
   * files.
   */
  async run(): Promise<{ faults: readonly string[]; counts: Counts; kept?: string }> {
    const { faults, streams, counts, conversations } = this.#world
    try {
      while (this.#killed < this.#kills && !faults.length && !streams.faults.length) await this.#cycle()
      if (!faults.length && !streams.faults.length) await this.#rest()
    } catch (error) {
      faults.push(`the lane failed: ${error instanceof Error ? error.stack : String(error)}`)
    }
    const told = conversations.filter(({ id }) => faults.some(fault => fault.includes(`${id}:`)))
    for (const conversation of told) this.#t.comment(`${conversation.id}: ${conversation.told.join('; ')}`)
    const found = {
      faults: [...faults, ...streams.faults],
      counts: { kills: this.#killed, frames: streams.shown, ...Object.fromEntries([...counts].sort()) },
    }
    return found.faults.length
      ? { ...found, kept: keep(this.#place, this.#name, found.faults, found.counts, conversations) }
      : found
  }

  /** From a start to a kill. */
  async #cycle(): Promise<void> {
    const dice = this.#dice
    if (dice.chance(0.08)) {
      // Killed during its start, or right after it if the start was faster.
      const daemon = await this.#start([
        'timeout',
        '--foreground',
        '-s',
        'KILL',
        String((30 + dice.below(400)) / 1000),
      ]).catch(() => undefined)
      if (daemon) await killWithin(daemon)
      return this.#dead()
    }
    const daemon = await this.#start()
    if (dice.chance(0.2)) {
      await delay(dice.below(80))
      await daemon.kill9()
      return this.#dead()
    }
    await this.#reconcile(daemon)
    const what = dice.weighed({ any: 4, land: 4, rewind: 3, reply: 1.5, discard: 1, purge: 2 })
    const aim = what === 'any' ? undefined : new Moment(what)
    const aimed = dice.below(this.#drivers.length)
    const driven = [
      ...this.#drivers.map((driver, index) => driver.drive(daemon, index === aimed ? aim : undefined)),
      this.#office.drive(daemon),
    ]
    for (const { id, here } of this.#world.conversations) if (here === 'yes') void this.#world.streams.watch(daemon, id)
    if (aim) await aim.wait(dice, this.#place.workspace)
    else await delay(5 + dice.below(dice.chance(0.3) ? 600 : 200))
    await daemon.kill9()
    await Promise.all(driven)
    this.#dead()
  }

  #start(starter: string[] = []): Promise<RunningDaemon> {
    const { workspace, data } = this.#place
    return spawnDaemon(this.#t, { workspace, data, starter })
  }

  #dead(): void {
    this.#killed++
    this.#found = imageOf(this.#place.data, this.#world.streams)
  }

  /** Compares the state after a start with the model, and resolves the requests in flight. */
  async #reconcile(daemon: RunningDaemon): Promise<void> {
    const { conversations, faults } = this.#world
    const { workspace, folder, data } = this.#place
    const { agents } = await started(daemon)
    const { agents: archived } = await daemon.client.call('GET /agents/archived', {})
    const ids = new Set([...agents, ...archived].map(({ id }) => id))
    const goesOn = this.#office.settings()
    // First, because the repeated requests below change the queues.
    for (const found of this.#found) faults.push(...fateFaults(data, found, goesOn, !ids.has(found.conversation)))
    for (const conversation of conversations) await this.#settle(daemon, conversation, ids.has(conversation.id))
    const known = new Set(conversations.map(({ id }) => id))
    faults.push(...[...ids].filter(id => !known.has(id)).map(id => `${id} exists, and nobody opened it`))
    this.#landings()
    faults.push(...(await this.#office.faults(daemon)))
    faults.push(
      ...(await leftProcesses(folder, this.#world.mark, [daemon.pid, process.pid])).map(
        left => `was left running: ${left}`,
      ),
    )
    for (const [file, text] of Object.entries(PERSON))
      if (readFileSync(join(workspace, file), 'utf8') !== text) faults.push(`${file} of the person was changed`)
    if (this.#dice.chance(0.3)) this.#office.commit()
  }

  /** Checks the files of landings in the workspace, and counts the landings that changed any. */
  #landings(): void {
    for (const conversation of this.#world.conversations) {
      const before = conversation.landed
      this.#world.faults.push(...landingFaults(this.#place, conversation))
      if (![before, NOTHING].includes(conversation.landed)) count(this.#world, 'landed files')
    }
  }

  async #settle({ client }: RunningDaemon, conversation: Conversation, isHere: boolean): Promise<void> {
    const { faults } = this.#world
    const driver = this.#drivers[0]!
    const { id, flight, messages } = conversation
    delete conversation.flight
    if (conversation.here === 'gone') {
      if (isHere) faults.push(`${id} was removed from the board and still exists`)
      return
    }
    if (flight?.what === 'discard' || flight?.what === 'purge') {
      // An interrupted one is requested again, and then complete.
      conversation.here = 'gone'
      count(this.#world, flight.what)
      if (!isHere) return
      // It may have been interrupted before it was received: then a turn is still running.
      await client.call('POST /agent/stop', { conversationId: id })
      const again =
        flight.what === 'discard'
          ? client.call('POST /agents/{id}/discard', { id })
          : client.call('POST /agents/purge', { ids: [id] })
      const error = await again.then(
        () => undefined,
        (error: Refusal) => error,
      )
      if (error && error.status !== 404) faults.push(`${id}: a repeated ${flight.what} was refused: ${error.message}`)
      return
    }
    conversation.told.push(`kill ${this.#killed}`)
    if (!isHere && conversation.here === 'yes') faults.push(`${id} was acknowledged and is missing`)
    if (isHere) conversation.here = 'yes'
    if (flight?.what === 'message' && (isHere ? this.#dice.chance(0.6) : conversation.here === 'unsure')) {
      const answer = await send(client, flight.message).catch(refused)
      if (answer) driver.accepted(conversation, flight.message, answer)
      else {
        flight.message.gone = 'yes'
        if (!isHere) conversation.here = 'gone'
      }
    }
    if (conversation.here !== 'yes') return
    if (flight?.what === 'withdraw') flight.message.gone = 'maybe'
    if (flight?.what === 'reply') {
      const error = await client.call('POST /agent/reply', flight.reply).then(() => undefined, refused)
      if (error !== undefined) faults.push(`${id}: a reply sent again was answered ${String(error)}`)
    }
    const { messages: rows } = await client.call('GET /agents/{id}/transcript', { id })
    if (flight?.what === 'rewind') {
      const there = flight.rows.filter(row => rows.some(({ messageId }) => messageId === row))
      if (there.length && there.length < flight.rows.length)
        faults.push(`${id}: a rewind left ${there.join()} of ${flight.rows.join()}`)
      if (!there.length) driver.rewound(conversation, flight)
    }
    driver.read(conversation, rows)
    const acknowledged = messages.filter(({ answer }) => answer)
    const again = acknowledged[acknowledged.length - 1 - this.#dice.below(Math.min(3, acknowledged.length))]
    if (!again) return
    const answer = await send(client, again).catch(refused)
    if (JSON.stringify(answer) !== JSON.stringify(again.answer))
      faults.push(`${id}: ${again.id} was answered ${JSON.stringify(again.answer)}, and now ${JSON.stringify(answer)}`)
  }

  /** Lets everything end, and checks the final state. */
  async #rest(): Promise<void> {
    const { conversations, faults, streams } = this.#world
    const { workspace } = this.#place
    const daemon = await this.#start()
    await this.#reconcile(daemon)
    const left = conversations.filter(({ here }) => here === 'yes')
    for (const conversation of left) await this.#finish(daemon, conversation)
    for (const conversation of left) {
      const { id, isolated } = conversation
      const { messages } = await daemon.client.call('GET /agents/{id}/transcript', { id })
      this.#drivers[0]!.read(conversation, messages)
      const files = filesIn(isolated ? copyOf(this.#place, id) : workspace, id)
      faults.push(
        ...[
          ...recordFaults(conversation, messages),
          ...lineFaults(conversation, messages, files, run => streams.end(run)),
        ].map(fault => `${id}: ${fault}`),
      )
    }
    this.#landings()
    faults.push(...(await this.#office.faults(daemon)))
    const code = await daemon.terminate()
    if (code !== 0) faults.push(`the last daemon ended with ${code}: ${daemon.stderr().slice(-500)}`)
    faults.push(
      ...(await leftProcesses(this.#place.folder, this.#world.mark, [process.pid])).map(
        pid => `was left running: ${pid}`,
      ),
    )
    faults.push(
      ...leftovers(this.#place),
      ...repositoryFaults(this.#place, conversations),
      ...this.#office.ofPerson(Object.keys(PERSON)),
    )
    if (existsSync(join(this.#place.data, 'daemon.lock'))) faults.push('the lock of the data folder is left')
  }

  /** Answers, stops or waits until nothing is queued; then one more turn has to work. */
  async #finish(daemon: RunningDaemon, conversation: Conversation): Promise<void> {
    const { client } = daemon
    const { streams, mark } = this.#world
    const { id } = conversation
    const last = this.#drivers[0]!.last(conversation)
    for (let sent = false; ;) {
      const ended = await streams.watch(daemon, id, {
        onFrame: frame => {
          if (frame.kind === 'question' || frame.kind === 'plan' || frame.kind === 'permission')
            void client.call('POST /agent/reply', replyTo(frame.kind, frame.requestId)).catch(refused)
          if (frame.kind === 'tool_call' && JSON.stringify(frame).includes(mark))
            void client.call('POST /agent/stop', { conversationId: id }).catch(refused)
        },
      })
      const { messages, running } = await client.call('GET /agents/{id}/queue', { id })
      if (running) continue
      if (messages.length)
        await client
          .call('POST /agents/{id}/queue/order', {
            id,
            messageIds: messages.map(({ messageId }) => messageId),
            start: true,
          })
          .catch(refused)
      else if (!sent) {
        sent = true
        this.#drivers[0]!.accepted(conversation, last, await send(client, last))
      } else if (ended === last.answer?.run || streams.end(last.answer?.run ?? '')) return
    }
  }
}

/** The conversations, once the start is complete: on a busy machine it outlasts the time that calls are held. */
const started = async ({ client }: RunningDaemon) => {
  for (const until = performance.now() + STARTS_MS; ;) {
    try {
      return await client.call('GET /agents')
    } catch (error) {
      if (!(error instanceof Refusal && error.reason === 'unavailable') || performance.now() > until) throw error
      await delay(100)
    }
  }
}

/** The last line of a daemon's log about a failed request. */
const lastFailure = (data: string): string =>
  globSync('logs/daemon.log*', { cwd: data })
    .flatMap(name => readFileSync(join(data, name), 'utf8').split('\n'))
    .findLast(line => line.includes('a request failed')) ?? 'its log has no such line'

/** Kills a daemon inside a wrapper program, which then ends. */
const killWithin = async ({ pid, process: around }: RunningDaemon): Promise<void> => {
  const over = around.exitCode === null && around.signalCode === null ? once(around, 'exit') : undefined
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
  await over
}

/** Returns undefined for a refusal; throws every other error. */
const refused = (error: unknown): undefined => {
  if (error instanceof Refusal && error.status < 500) return undefined
  throw error
}
