import { pascal, refTo } from './schemas.js'
import type { JsonSchema, Schemas } from './schemas.js'

interface Events {
  /** One event of the stream: a union told apart by `event`. */
  readonly schema: JsonSchema
  /** Each of its forms, by name. */
  readonly made: Schemas
}

/**
 * The event types of a stream: `agent.attach` has `AgentAttachMessage`, `AgentAttachDone` and the shared `StreamError`.
 */
export const streamEventsOf = (id: string, message: JsonSchema, done: JsonSchema | undefined): Events => {
  const ending = done && Object.keys(done).length > 0 ? done : { type: 'object' as const }
  const forms: { readonly [event: string]: readonly [name: string, schema: JsonSchema] } = {
    message: [`${pascal(id)}Message`, eventOf('message', message, 'One event of the stream.')],
    done: [`${pascal(id)}Done`, eventOf('done', ending, 'The stream is over: nothing follows.')],
    error: [
      'StreamError',
      eventOf('error', refTo('Refusal'), 'The stream failed, or access to it ended: nothing follows.'),
    ],
  }
  const names = Object.entries(forms).map(([event, [name]]) => [event, refTo(name).$ref!] as const)
  return {
    schema: {
      oneOf: names.map(([, $ref]) => ({ $ref })),
      discriminator: { propertyName: 'event', mapping: Object.fromEntries(names) },
    },
    made: Object.fromEntries(Object.values(forms)),
  }
}

const eventOf = (event: string, data: JsonSchema, description: string): JsonSchema => ({
  type: 'object',
  properties: {
    event: { type: 'string', const: event },
    data,
    ...(event === 'message' && {
      id: { type: 'string', description: 'Resume after it with the header `last-event-id`, where the call says so.' },
    }),
  },
  required: ['event', 'data'],
  description,
})
