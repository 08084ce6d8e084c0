import { agents } from '../plugins/agents/contract.js'
import type { Agents } from '../plugins/agents/contract.js'
import { FRAME_NOTES, type FrameNotes } from '../plugins/console/web/run/notes.js'
import type { Handlers, Host } from '../sdk/index.js'
import { refuse } from '../sdk/index.js'

declare const handlers: Handlers<Agents>

/** Compiled, never run: what must not compile, each with the reason. */
export const misuse = async (host: Host): Promise<void> => {
  // @ts-expect-error no contract declares this call
  await host.call('GET /nope')
  // @ts-expect-error an event is no call
  await host.call('daemon.ready')
  // @ts-expect-error a required input is missing
  await host.call('agent.conversation')
  // @ts-expect-error the input has another type
  await host.call('agent.conversation', { id: 1 })
  // @ts-expect-error the input has a field the call does not know
  await host.call('agent.conversation', { id: 'c', name: 'x' })
  // @ts-expect-error a call without input takes none
  await host.call('GET /agents', { limit: 1 })
  // @ts-expect-error the reply has no such field
  void (await host.call('GET /agents')).count
  // @ts-expect-error a stream is iterated, it has no fields
  void (await host.call('POST /agent/attach', { conversationId: 'c' })).kind
  // @ts-expect-error a card reply has one of three kinds
  await host.call('POST /agent/reply', { kind: 'maybe', requestId: 'r' })
  // @ts-expect-error a plan reply says whether it approves
  await host.call('POST /agent/reply', { kind: 'plan', requestId: 'r' })
  // @ts-expect-error a request's own context is passed on, not made up from a name
  await host.call('GET /agents', undefined, { as: 'owner' })
  // @ts-expect-error nobody declares this event
  host.emit('agent.sneezed', {})
  // @ts-expect-error the event carries other data
  host.emit('agent.removed', { agentId: 'c', how: 'lost' })
  // @ts-expect-error a listener is given the data of its event
  host.on('agent.removed', ({ reason }) => reason)
  // @ts-expect-error nobody collects this point
  host.contribute('system.cookies', async () => [])
  // @ts-expect-error a contribution has the shape its point names
  host.contribute('system.programs', async () => [{ name: 'git' }])
  // @ts-expect-error calls of the contract are left unserved
  await host.serve(agents, { 'GET /agents': handlers['GET /agents'] })
  // @ts-expect-error the handler answers something else
  await host.serve(agents, { ...handlers, 'POST /agents/{id}/discard': () => ({ ok: false }) })
  await host.serve(agents, {
    ...handlers,
    // @ts-expect-error the handler expects an input the call does not have
    'GET /agents/{id}': (input: { name: string }) => {
      throw new Error(input.name)
    },
  })
  // @ts-expect-error what a plugin is told of its place does not change
  host.place.data = '/'
  // @ts-expect-error a refusal has one of the known reasons
  refuse('teapot', 'no coffee here')

  await host.serve(agents, handlers)
  await host.call('GET /agents')
  await host.call('agent.conversation', { id: 'c' }, { signal: host.signal })
  for await (const event of await host.call('POST /agent/attach', { conversationId: 'c' })) {
    // @ts-expect-error only a frame event has a frame
    void event.event
    if (event.kind === 'frame') void event.event
  }
  const { notice, ...others } = FRAME_NOTES
  // @ts-expect-error a kind of frame has no row in the console
  const rows: FrameNotes = others
  // @ts-expect-error the row of a frame has a field of another kind of frame
  const misread: FrameNotes = { ...FRAME_NOTES, notice: FRAME_NOTES.error }
  void [notice, rows, misread]
}
