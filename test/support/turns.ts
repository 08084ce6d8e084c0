import type { Client } from '../../sdk/client.js'
import type { AttachData, Frame } from '../../plugins/agent/contract.js'

export interface Watched {
  readonly seen: { seq: number; event: Frame }[]
  /** The next frame that matches; throws if the run ends before. */
  until(fits: (frame: Frame) => boolean): Promise<Frame & { requestId: string }>
  /** All frames up to the end of the run. */
  all(): Promise<{ seq: number; event: Frame }[]>
}

/** Watches a conversation's newest run, or the given one, from a position. */
export const framesOf = (
  client: Client,
  conversationId: string,
  from: { run?: string; after?: number } = {},
): Watched => {
  const seen: { seq: number; event: Frame }[] = []
  const events = (async function* () {
    for await (const data of (await client.call('POST /agent/attach', {
      conversationId,
      ...from,
    })) as AsyncIterable<AttachData>) {
      if (data.kind !== 'frame') continue
      seen.push({ seq: data.seq, event: data.event })
      yield data.event
    }
  })()
  return {
    seen,
    until: async fits => {
      for (;;) {
        const { value, done } = await events.next()
        if (done) throw new Error(`the run ended first, after ${seen.map(({ event }) => event.kind).join(' ')}`)
        if (fits(value)) return value as Frame & { requestId: string }
      }
    },
    all: async () => {
      for await (const _ of events) continue
      return seen
    },
  }
}

/** Runs one turn to its end and returns its frames. */
export const runTurn = async (
  client: Client,
  conversationId: string,
  prompt: string,
  options: object = {},
): Promise<Frame[]> => {
  const { run } = await client.call('POST /agent', { conversationId, prompt, ...options })
  return (await framesOf(client, conversationId, { run }).all()).map(({ event }) => event)
}
