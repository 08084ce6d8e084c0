import type { Test } from 'tap'
import { createClient, type Client } from '../../../sdk/client.js'
import type { AgentCard } from '../../../plugins/agents/contract.js'
import type { Text } from '../../../sdk/types.js'
import { daemonWith, type Support } from '../../support/daemon.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { freshSession } from '../calls.js'
import type { Known } from './inputs.js'

/** A sandbox with history that does not change between two requests. */
export interface World {
  readonly daemon: Support
  /** The values that exist in it now. */
  known(): Promise<Known>
  /** Everything that a refused call may not change, as one text. */
  state(): Promise<string>
  /** Ends the work that a call began, and restores the conversations that a call removed. */
  settle(): Promise<void>
}

const OWNER = {
  caller: { kind: 'session', actor: 'owner@sandbox.local', role: 'owner' },
  signal: new AbortController().signal,
  trusted: true,
} as const

/** The conversations that the sandbox always has, and how each is created. */
const SEEDS: { readonly [id: string]: (client: Client, id: string) => Promise<unknown> } = {
  changed: (client, id) => runTurn(client, id, 'write changed.txt\n| changed\nsay done', { isolated: true }),
  talked: (client, id) => runTurn(client, id, 'say hello'),
  asked: async (client, id) => {
    await client.call('POST /agent', {
      conversationId: id,
      prompt: 'ask which?\n| one: first\n| two: second',
      isolated: true,
    })
    await framesOf(client, id).until(({ kind }) => kind === 'question')
    await client.call('POST /agent', { conversationId: id, prompt: 'say later' })
  },
  shelved: async (client, id) => {
    await runTurn(client, id, 'write shelved.txt\n| shelved', { isolated: true })
    await client.call('POST /agents/archive', { ids: [id] })
  },
}
const LIVE = new Set(['running', 'awaiting', 'stopping', 'resuming'])

const forget = async (client: Client, id: string): Promise<void> => {
  const ids = [id as Text]
  await client.call('POST /agent/stop', { conversationId: ids[0]! })
  await framesOf(client, id)
    .all()
    .catch(() => {})
  await client.call('POST /agents/archive', { ids })
  await client.call('POST /agents/purge', { ids })
}

/** A daemon with every group and the conversations of the seeds. */
export const openWorld = async (t: Test): Promise<World> => {
  const daemon = await daemonWith(t, [], { files: { 'README.md': '# work\n', 'changed.txt': 'old\n' } })
  const ask = <T>(call: string, input: object = {}): Promise<T> =>
    daemon.kernel.calls.answer(call, input, OWNER) as Promise<T>
  const cards = async (): Promise<AgentCard[]> => (await ask<{ agents: AgentCard[] }>('GET /agents')).agents
  const store = async (): Promise<AgentCard[]> => (await ask<{ agents: AgentCard[] }>('GET /agents/archived')).agents

  const world: World = {
    daemon,
    known: async () => {
      const all = [...(await cards()), ...(await store())]
      const { tokens } = await ask<{ tokens: { id: string }[] }>('GET /system/control/tokens')
      const { messages: queue } = await ask<{ messages: { messageId: string }[] }>('GET /agents/{id}/queue', {
        id: 'asked',
      })
      const ids = Object.keys(SEEDS)
      const waiting = queue.map(({ messageId }) => messageId)
      const runs = all.flatMap(({ run }) => run ?? [])
      return {
        id: [...ids, ...tokens.map(token => token.id)],
        conversationId: ids,
        ids,
        run: runs,
        requestId: all.flatMap(card => card.cards?.map(({ requestId }) => requestId) ?? []),
        messageId: waiting,
        messageIds: waiting,
        path: ['changed.txt', 'README.md', 'gone.txt', '../README.md'],
        repo: ['root', 'other'],
        agent: ['script'],
        prompt: ['say hello', 'say a\nsay b', 'x'],
        revision: ['x'],
      }
    },
    state: async () => {
      const [roster, archived, settings, tokens] = await Promise.all([
        cards(),
        store(),
        ask<object>('GET /settings'),
        ask<object>('GET /system/control/tokens'),
      ])
      const queues = await Promise.all(
        roster.filter(({ waiting }) => waiting).map(({ id }) => ask<object>('GET /agents/{id}/queue', { id })),
      )
      return JSON.stringify({ roster, archived, settings, tokens, queues }, undefined, 1)
    },
    settle: async () => {
      const client = createClient({ url: daemon.url, session: freshSession(daemon) })
      for (const { id, status, cards: open, waiting } of await cards()) {
        const waits = id === 'asked' && status === 'awaiting' && open?.length === 1 && waiting === 1
        if (waits || (!LIVE.has(status) && !waiting)) continue
        await forget(client, id)
      }
      const [there, away] = [new Set((await cards()).map(({ id }) => id)), new Set((await store()).map(({ id }) => id))]
      for (const [id, begin] of Object.entries(SEEDS)) {
        if (id === 'shelved' ? away.has(id) : there.has(id)) continue
        if (there.has(id) || away.has(id)) await forget(client, id)
        await begin(client, id)
      }
    },
  }
  await world.settle()
  await ask('POST /settings/patch', { set: { agentRetentionDays: 7 } })
  return world
}
