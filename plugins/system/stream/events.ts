import { once } from 'node:events'
import type { Caller, Context, Host, Input, Watch } from '../../../sdk/index.js'
import type { LiveFrame, PlacedForm } from '../../../sdk/kernel.js'
import { reachFor } from '../../../sdk/node/access/asked-reach.js'
import { placesOfConversation } from '../../../sdk/node/access/conversation-reach.js'
import { WorkspacePaths } from '../../../sdk/node/files/workspace-paths.js'
import type { Me, PresenceUser, System } from '../contract.js'
import { httpRequestOf } from '../request.js'
import { attentionFrame, BoardStream, type After } from './board.js'
import { Presence } from './presence.js'
import { warned } from '../../../sdk/index.js'

type EventsHost = Pick<Host, 'call' | 'serves' | 'on' | 'log' | 'place' | 'signal'>

const SNAPSHOTS = ['agents', 'presence', 'attention', 'boot']
/** After each of these events one card may have changed. */
const ONE = ['turn.settled', 'card.raised', 'card.resolved', 'loop.changed'] as const
/** After each of these any card may have changed, because all are compared with the tree that was landed in. */
const ANY = ['agent.landed', 'agent.conflict', 'agent.removed'] as const
const AGAIN = ['presence', 'attention']

/** The event stream of the sandbox: its watchers, the snapshots they begin with, and the frames of this group. */
export class EventStream {
  readonly presence: Presence
  readonly #host: EventsHost
  readonly #board: BoardStream
  /** Watchers who are limited to areas. */
  readonly #limited = new Set<Caller>()

  constructor(host: EventsHost, after?: After) {
    this.#host = host
    this.presence = new Presence(async users =>
      host.call('kernel.events.show', { frames: [await this.#presenceFrame(users)] }),
    )
    const { workspace } = host.place
    this.#board = new BoardStream({
      read: async () =>
        (await host.serves('GET /agents'))
          ? host.call('GET /agents', undefined, { signal: host.signal })
          : { agents: [], rev: 0, held: [] },
      some: async ids =>
        (await host.serves('agents.cards')) ? host.call('agents.cards', { ids }, { signal: host.signal }) : undefined,
      needs: async () => ((await host.serves('needs.counts')) ? (await host.call('needs.counts')).open : {}),
      approvals: async () =>
        (await host.serves('approvals.counts')) ? (await host.call('approvals.counts')).proposed : {},
      issues: async () => ((await host.serves('issues.waiting')) ? (await host.call('issues.waiting')).waiting : []),
      branches: async () => ((await host.serves('ci.waiting')) ? (await host.call('ci.waiting')).waiting : []),
      show: frames => host.call('kernel.events.show', { frames }),
      places: card => placesOfConversation(new WorkspacePaths(workspace), card),
      failed: error =>
        host.signal.aborted || host.log.warn('reading the fleet for the event stream failed', { error: String(error) }),
      ...(after && { after }),
    })
  }

  /** Publishes the first snapshots and subscribes to what changes them. */
  async open(): Promise<void> {
    const failed = warned(this.#host, 'updating the board')
    await this.#host.call('kernel.events.show', { frames: [await this.#presenceFrame([]), attentionFrame()] })
    this.#host.on('agent.changed', ({ id }) => this.#board.changed(id))
    this.#host.on('agent.described', ({ agentId }) => this.#board.changed(agentId))
    for (const event of ONE) this.#host.on(event, ({ conversationId }) => this.#board.changed(conversationId))
    for (const event of ANY) this.#host.on(event, () => this.#board.changed())
    this.#host.on('automations.held', ({ waiting }) => void this.#board.held(waiting).catch(failed))
    this.#host.on(
      'need.changed',
      ({ conversationId, open }) => void this.#board.needed(conversationId, open).catch(failed),
    )
    this.#host.on(
      'approval.changed',
      ({ conversationId, proposed }) => void this.#board.proposed(conversationId, proposed).catch(failed),
    )
    this.#host.on('issues.waiting', ({ waiting }) => void this.#board.reported(waiting).catch(failed))
    this.#host.on('ci.waiting', ({ waiting }) => void this.#board.failed(waiting).catch(failed))
    this.#host.on('daemon.ready', () => this.#board.ready())
    this.#host.on('member.changed', ({ email }) => void this.#changed(email).catch(failed))
  }

  /** Serves one watcher, which is on the roster until the stream ends. */
  async *watch(
    { clientId, roster = 'snapshot', after }: Input<System, 'GET /events'>,
    context: Context,
    me: Me,
  ): AsyncGenerator<Watch> {
    httpRequestOf(context)
    const { caller } = context
    const unwatch = await this.#board.watched()
    let leave: (() => Promise<void>) | undefined
    try {
      const { kind, email } = caller
      if (clientId !== undefined && kind === 'session' && email !== undefined)
        leave = await this.presence.enter({ ...caller, email }, clientId)
      const reach = await reachFor(this.#host, caller)
      if (reach) this.#limited.add(caller)
      const { workspaceId, routes, shapes, build } = await this.#host.call('kernel.info')
      yield {
        watch: {
          hello: { workspaceId, routes, shapes, build, me },
          form: kind === 'token' ? 'tokens' : 'people',
          mode: roster,
          ...(reach && { reach }),
          snapshots: SNAPSHOTS,
          again: AGAIN,
          ...(after !== undefined && { after }),
        },
      }
    } finally {
      unwatch()
      this.#limited.delete(caller)
      if (!this.#host.signal.aborted) await leave?.()
    }
  }

  /** Reads the board for another group, until its stream ends. */
  async *attend(signal: AbortSignal): AsyncGenerator<{ watched: true }> {
    const unwatch = await this.#board.watched()
    try {
      yield { watched: true }
      if (!signal.aborted) await once(signal, 'abort')
    } finally {
      unwatch()
    }
  }

  /**
   * Streams of people who lost access have ended already; streams of people who gained access end now, to begin again
   * with all they reach.
   */
  async #changed(email: string): Promise<void> {
    const { members } = await this.#host.call('kernel.members.list')
    const member = members.find(one => one.email === email)
    const areas = JSON.stringify(member?.areas)
    const isStale = [...this.#limited].some(caller => caller.email === email && JSON.stringify(caller.areas) !== areas)
    if (member && isStale) await this.#host.call('kernel.members.moved', { email })
  }

  async #presenceFrame(users: PresenceUser[]): Promise<LiveFrame> {
    const places = new WorkspacePaths(this.#host.place.workspace)
    const items = await Promise.all(users.map(user => this.#formsOf(user, places)))
    return {
      data: { kind: 'presence', users } as { kind: string },
      tokens: false,
      limited: { list: { field: 'users', items } },
      snapshot: true,
    }
  }

  /** Everyone sees that a person is present; only people who reach a place see that they view it. */
  async #formsOf({ view, sessionId, path, ...user }: PresenceUser, places: WorkspacePaths): Promise<PlacedForm[]> {
    const ofSession = sessionId === undefined ? [] : (this.#board.placesOf(sessionId) ?? [undefined])
    const looksAt = [...(path === undefined ? [] : [await places.of(path)]), ...ofSession]
    const within = looksAt.filter(place => place !== undefined)
    const details = {
      ...(view !== undefined && { view }),
      ...(sessionId !== undefined && { sessionId }),
      ...(path !== undefined && { path }),
    }
    const whole = within.length > 0 && within.length === looksAt.length
    return [...(whole ? [{ within, value: { ...user, ...details } }] : []), { within: [], value: user }]
  }
}
