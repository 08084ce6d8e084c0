import type { CardReply, Started, TranscriptMessage } from '../../../plugins/agent/contract.js'
import { Refusal } from '../../../sdk/refusal.js'
import { Unreached, type Client } from '../../../sdk/client.js'
import type { RunningDaemon } from '../../support/daemon.js'
import type { Dice } from './dice.js'
import { rowOf, scriptOf, type Conversation, type Flight, type Kind, type Message } from './model.js'
import { CARDS, type Streams } from './streams.js'

/** The state that all drivers of a lane share. */
export interface World {
  readonly conversations: Conversation[]
  readonly streams: Streams
  readonly faults: string[]
  /** A word in the commands of these turns, which tells them from other processes of the machine. */
  readonly mark: string
  /** The number of acknowledged requests, by name. */
  readonly counts: Map<string, number>
  /** The daemon's reason for a failed answer. */
  readonly why: () => string
}

/** An operation that a driver performs while the lane waits for it. */
export interface Aim {
  readonly what: 'land' | 'rewind' | 'reply' | 'discard' | 'purge'
  /** Called just before the request. */
  readonly begun: () => void
  /** Called when it was answered or refused. */
  readonly over: () => void
}

const BUSY = new Set<string>(['running', 'awaiting', 'stopping', 'resuming'])

/** The daemon was killed during a call. */
export class Cut extends Error {}

/** Increments a counter of the run. */
export const count = ({ counts }: Pick<World, 'counts'>, name: string): void =>
  void counts.set(name, (counts.get(name) ?? 0) + 1)

/** The reply to a card of one of the scripts. */
export const replyTo = (kind: string, requestId: string): CardReply =>
  kind === 'question'
    ? { kind, requestId, answers: { 'Which?': 'x' } }
    : kind === 'plan'
      ? { kind, requestId, approve: true }
      : { kind: 'permission', requestId, decision: 'once' }

/** One client that works in one conversation after another, one call at a time. */
export class Driver {
  readonly #world: World
  readonly #dice: Dice
  readonly #name: string
  #nth = 0
  #conversation: Conversation | undefined
  #aim: Aim | undefined

  constructor(world: World, dice: Dice, name: string) {
    this.#world = world
    this.#dice = dice
    this.#name = name
  }

  /** Works until the daemon is killed, starting with the aim. */
  async drive(daemon: RunningDaemon, aim?: Aim): Promise<void> {
    this.#aim = aim
    try {
      while (this.#aim) await this.#reach(daemon, this.#aim)
      for (;;) {
        if (this.#conversation?.here === 'gone') this.#conversation = undefined
        await (this.#conversation ? this.#step(daemon, this.#conversation) : this.#open(daemon))
      }
    } catch (error) {
      if (!(error instanceof Cut)) throw error
    }
  }

  /** Has a separate conversation write and end its turn, then performs the operation of the aim on it. */
  async #reach(daemon: RunningDaemon, { what }: Aim): Promise<void> {
    const own = this.#world.conversations.filter(
      ({ id, here, isolated, flight, isSource }) =>
        id.startsWith(this.#name) && here === 'yes' && isolated && !flight && !(isSource && what === 'rewind'),
    )
    const conversation = own.at(-1 - this.#dice.below(Math.min(3, own.length))) ?? (await this.#open(daemon, true))
    this.#conversation = conversation
    if (conversation.here !== 'yes') return
    if (what === 'reply') return this.#raise(daemon, conversation)
    if (!(await this.#write(daemon, conversation, what === 'land' ? 'many' : 'plain'))) return
    if (what === 'land') return this.#land(daemon.once, conversation)
    if (what === 'rewind') return this.#rewind(daemon.once, conversation)
    if (what === 'discard') return this.#discard(daemon.once, conversation)
    if (await this.#archive(daemon.once, conversation)) await this.#purge(daemon.once, conversation)
  }

  /** Has a conversation write its lines before its queued messages; returns whether it did. */
  async #write(daemon: RunningDaemon, conversation: Conversation, kind: Kind = 'plain'): Promise<boolean> {
    await this.#clear(daemon.once, conversation)
    const run = await this.#say(daemon, conversation, {}, kind)
    if (run === undefined) return false
    await this.#world.streams.watch(daemon, conversation.id, { run })
    return this.#world.streams.end(run) === 'completed'
  }

  /** Has a conversation raise a card, and answers it. */
  async #raise(daemon: RunningDaemon, conversation: Conversation): Promise<void> {
    await this.#clear(daemon.once, conversation)
    const run = await this.#say(daemon, conversation, {}, this.#dice.pick(['ask', 'plan', 'permit']))
    if (run === undefined) return
    await this.#world.streams.watch(daemon, conversation.id, { run, until: frame => CARDS.has(frame.kind) })
    await this.#answer(daemon.once, conversation)
  }

  async #open(daemon: RunningDaemon, mustBeIsolated = false): Promise<Conversation> {
    const dice = this.#dice
    const sources = this.#world.conversations.filter(
      ({ here, isolated, flight }) => here === 'yes' && isolated && flight?.what !== 'rewind',
    )
    const source = dice.chance(0.25) ? sources[dice.below(sources.length)] : undefined
    const fork = source && (await this.#fork(daemon, source))
    const isolated = mustBeIsolated || fork !== undefined || dice.chance(0.7)
    const conversation: Conversation = {
      id: `${this.#name}${this.#nth}`,
      isolated,
      forked: fork?.rows ?? [],
      messages: [],
      here: 'unsure',
      rewound: false,
      record: [],
      landed: '',
      told: [],
    }
    this.#conversation = conversation
    this.#world.conversations.push(conversation)
    await this.#say(daemon, conversation, { isolated, ...fork?.input })
    return conversation
  }

  /** Forks a conversation, if its source has any rows; returns the rows it begins with. */
  async #fork({ once }: RunningDaemon, source: Conversation): Promise<{ rows: string[]; input: object } | undefined> {
    source.isSource = true
    const read = await this.#ask(undefined, { what: 'look' }, () =>
      once.call('GET /agents/{id}/transcript', { id: source.id }),
    )
    const users = read?.messages.filter(({ role }) => role === 'user') ?? []
    if (!read || !users.length) return undefined
    const keep = users[this.#dice.below(users.length)]!.index
    const rows = read.messages.slice(0, keep).map(({ text }) => text)
    return {
      rows,
      input: { forkOf: { conversationId: source.id, keep, files: this.#dice.chance(0.5) ? 'then' : 'now' } },
    }
  }

  async #step(daemon: RunningDaemon, conversation: Conversation): Promise<void> {
    const { once: client } = daemon
    const { id, isolated } = conversation
    const look = <T>(call: () => Promise<T>) => this.#ask(conversation, { what: 'look' }, call)
    const what = this.#dice.weighed({
      say: 10,
      answer: 8,
      rest: 6,
      stop: 2,
      withdraw: 2,
      order: 3,
      read: 2,
      archive: 1,
      ...(isolated ? { land: 6, rewind: 6, discard: 2, leave: 0.5 } : { land: 0, rewind: 0, discard: 0, leave: 2 }),
    })
    switch (what) {
      case 'say':
        await this.#say(daemon, conversation, {})
        return
      case 'answer':
        return this.#answer(client, conversation)
      case 'rest':
        return new Promise(resolve => setTimeout(resolve, this.#dice.below(40)))
      case 'stop':
        return this.#free(client, conversation)
      case 'withdraw':
        await this.#withdraw(client, conversation)
        return
      case 'order': {
        const line = await look(() => client.call('GET /agents/{id}/queue', { id }))
        const messageIds = line?.messages.map(({ messageId }) => messageId).reverse() ?? []
        for (const message of conversation.messages) message.moved ||= messageIds.includes(message.id)
        const start = this.#dice.chance(0.7) && messageIds.length > 0
        if (
          await this.#ask(conversation, { what: 'order' }, () =>
            client.call('POST /agents/{id}/queue/order', { id, messageIds, start }),
          )
        )
          count(this.#world, 'order')
        return
      }
      case 'land':
        if (this.#dice.chance(0.5) && !(await this.#write(daemon, conversation))) return
        return this.#land(client, conversation)
      case 'rewind':
        if (this.#dice.chance(0.5) && !(await this.#write(daemon, conversation))) return
        return this.#rewind(client, conversation)
      case 'archive':
        if (!(await this.#archive(client, conversation))) return
        if (isolated && this.#dice.chance(0.3)) return this.#purge(client, conversation)
        if (this.#dice.chance(0.5))
          await this.#ask(conversation, { what: 'archive' }, () => client.call('POST /agents/unarchive', { ids: [id] }))
        return
      case 'discard':
        if (this.#dice.chance(0.7)) await this.#free(client, conversation)
        return this.#discard(client, conversation)
      case 'leave':
        this.#conversation = undefined
        return
      case 'read': {
        const read = await look(() => client.call('GET /agents/{id}/transcript', { id }))
        if (read) this.read(conversation, read.messages)
      }
    }
  }

  /** Answers the cards that are open. */
  async #answer(client: Client, conversation: Conversation): Promise<void> {
    const card = await this.#ask(conversation, { what: 'look' }, () =>
      client.call('GET /agents/{id}', { id: conversation.id }),
    )
    for (const { requestId, kind } of card?.cards ?? []) {
      const reply = replyTo(kind, requestId)
      if (await this.#ask(conversation, { what: 'reply', reply }, () => client.call('POST /agent/reply', reply)))
        count(this.#world, 'reply')
    }
  }

  /** Compares a record with its previous version. */
  read(conversation: Conversation, messages: readonly TranscriptMessage[]): void {
    const rows = messages.map(rowOf)
    const changed = conversation.record.findIndex((row, index) => rows[index] !== row)
    if (changed !== -1)
      this.#world.faults.push(
        `${conversation.id}: row ${changed} was ${conversation.record[changed]}, and is ${rows[changed]}`,
      )
    const texts = messages.slice(0, conversation.forked.length).map(({ text }) => text)
    if (String(texts) !== String(conversation.forked))
      this.#world.faults.push(`${conversation.id} begins with ${texts.join()}, not with ${conversation.forked.join()}`)
    conversation.record = rows
  }

  /** Sends a message; returns the run that it belongs to. */
  async #say(
    daemon: RunningDaemon,
    conversation: Conversation,
    more: object,
    only?: Kind,
  ): Promise<string | undefined> {
    const dice = this.#dice
    const { id, isolated } = conversation
    const nth = this.#nth++
    const kind: Kind =
      only
      ?? dice.weighed({
        plain: 6,
        slow: 5,
        ask: 3,
        plan: 1,
        permit: 1,
        words: 2,
        sleep: 1,
        git: isolated ? 2 : 0,
        helper: 1,
        many: 0,
        said: 0,
      })
    const message: Message = {
      id: `${this.#name}-${nth}`,
      kind,
      nth,
      body: {
        conversationId: id,
        messageId: `${this.#name}-${nth}`,
        ...more,
        prompt: scriptOf(kind, id, `${this.#name}-${nth}`, this.#world.mark),
        ...(dice.chance(0.4) && { errand: 'ci-fix' }),
        ...(isolated && dice.chance(0.15) && { autoLand: true }),
      },
    }
    conversation.messages.push(message)
    const answer = await this.#ask(conversation, { what: 'message', message }, () => send(daemon.once, message))
    if (!answer) {
      // A message that was refused leaves no trace.
      message.gone = 'yes'
      if (conversation.here === 'unsure') conversation.here = 'gone'
      return undefined
    }
    this.accepted(conversation, message, answer)
    if (dice.chance(0.8)) void this.#world.streams.watch(daemon, id, { run: answer.run })
    return answer.run
  }

  /** Records an acknowledged message. */
  accepted(conversation: Conversation, message: Message, answer: Started): void {
    message.answer = answer
    conversation.here = 'yes'
    count(this.#world, answer.delivery)
  }

  /** A new message for one more turn. */
  last(conversation: Conversation): Message {
    const id = `${this.#name}-${this.#nth++}`
    const message: Message = {
      id,
      kind: 'plain',
      nth: Infinity,
      body: { conversationId: conversation.id, messageId: id, prompt: scriptOf('plain', conversation.id, id, '') },
    }
    conversation.messages.push(message)
    return message
  }

  /** Withdraws the last queued message; returns whether it did. */
  async #withdraw(client: Client, conversation: Conversation): Promise<boolean> {
    const { id, messages } = conversation
    const line = await this.#ask(conversation, { what: 'look' }, () => client.call('GET /agents/{id}/queue', { id }))
    const message = messages.find(each => each.id === line?.messages.at(-1)?.messageId)
    if (!message) return false
    const done = await this.#ask(conversation, { what: 'withdraw', message }, () =>
      client.call('DELETE /agents/{id}/queue/{messageId}', { id, messageId: message.id }),
    )
    if (!done) return false
    message.gone = 'yes'
    count(this.#world, 'withdraw')
    return true
  }

  async #land(client: Client, conversation: Conversation): Promise<void> {
    const { id } = conversation
    const done = await this.#ask(conversation, { what: 'land' }, () => client.call('POST /agents/{id}/land', { id }))
    if (done) count(this.#world, done.landed ? 'land' : 'conflict')
  }

  /** Makes a conversation idle, as a client does before a rewind. */
  async #free(client: Client, conversation: Conversation): Promise<void> {
    if (
      await this.#ask(conversation, { what: 'stop' }, () =>
        client.call('POST /agent/stop', { conversationId: conversation.id }),
      )
    )
      count(this.#world, 'stop')
  }

  /** Also withdraws queued messages, so that the next message is the next turn. */
  async #clear(client: Client, conversation: Conversation): Promise<void> {
    await this.#free(client, conversation)
    while (await this.#withdraw(client, conversation));
  }

  async #rewind(client: Client, conversation: Conversation): Promise<void> {
    const { id } = conversation
    if (this.#dice.chance(0.7)) await this.#free(client, conversation)
    const card = await this.#ask(conversation, { what: 'look' }, () => client.call('GET /agents/{id}', { id }))
    // A fork reads the record first, and rows that arrive after it was read here would be missed.
    if (conversation.isSource || !card || BUSY.has(card.status)) return
    const read = await this.#ask(conversation, { what: 'look' }, () =>
      client.call('GET /agents/{id}/transcript', { id }),
    )
    const places =
      read?.messages.filter(({ role, checkpointId }) => role === 'user' && checkpointId !== undefined) ?? []
    const place = places[this.#dice.below(places.length)]
    if (!read || !place) return
    const rows = read.messages.flatMap(({ index, messageId }) =>
      index >= place.index && messageId !== undefined ? [messageId] : [],
    )
    const flight: Flight = { what: 'rewind', index: place.index, rows }
    if (
      await this.#ask(conversation, flight, () =>
        client.call('POST /agent/rewind', { conversationId: id, index: place.index }),
      )
    )
      this.rewound(conversation, flight)
  }

  /** Records a completed rewind. */
  rewound(conversation: Conversation, { index, rows }: Extract<Flight, { what: 'rewind' }>): void {
    conversation.rewound = true
    conversation.record.length = Math.min(conversation.record.length, index)
    for (const message of conversation.messages) if (rows.includes(message.id)) message.gone = 'yes'
    count(this.#world, 'rewind')
  }

  async #archive(client: Client, conversation: Conversation): Promise<boolean> {
    if (
      !(await this.#ask(conversation, { what: 'archive' }, () =>
        client.call('POST /agents/archive', { ids: [conversation.id] }),
      ))
    )
      return false
    count(this.#world, 'archive')
    return true
  }

  #purge(client: Client, conversation: Conversation): Promise<void> {
    return this.#leave(conversation, 'purge', () => client.call('POST /agents/purge', { ids: [conversation.id] }))
  }

  #discard(client: Client, conversation: Conversation): Promise<void> {
    return this.#leave(conversation, 'discard', () => client.call('POST /agents/{id}/discard', { id: conversation.id }))
  }

  async #leave(conversation: Conversation, what: 'discard' | 'purge', call: () => Promise<unknown>): Promise<void> {
    if (!(await this.#ask(conversation, { what }, call))) return
    conversation.here = 'gone'
    count(this.#world, what)
  }

  /** Makes a call; undefined if it was refused. An interrupted call stays in flight. */
  async #ask<T>(
    conversation: Conversation | undefined,
    flight: Flight,
    call: () => Promise<T>,
  ): Promise<T | undefined> {
    if (conversation) conversation.flight = flight
    const aim = flight.what === this.#aim?.what ? this.#aim : undefined
    aim?.begun()
    const tell = (came: string) =>
      flight.what !== 'look'
      && conversation?.told.push(`${flight.what} ${'message' in flight ? flight.message.id : ''} ${came}`)
    try {
      const answer = await call()
      delete conversation?.flight
      if (aim) this.#over(aim)
      tell(JSON.stringify(answer).slice(0, 200))
      return answer
    } catch (error) {
      if (!(error instanceof Refusal) || error instanceof Unreached) {
        tell('was cut')
        throw new Cut('the daemon was killed', { cause: error })
      }
      delete conversation?.flight
      if (aim) this.#over(aim)
      tell(`was refused: ${error.message}`)
      if (flight.what !== 'look') count(this.#world, `refused ${flight.what}`)
      if (error.status >= 500 && error.status !== 503)
        this.#world.faults.push(
          `${conversation?.id} ${flight.what}: ${error.status} ${error.message}; ${this.#world.why()}`,
        )
      return undefined
    }
  }

  #over(aim: Aim): void {
    this.#aim = undefined
    aim.over()
  }
}

/** Sends a message; repeating it has no further effect. */
export const send = (client: Client, { body }: Message): Promise<Started> =>
  client.call('POST /agent', body as { prompt: string })
