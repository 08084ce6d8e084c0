import type { oas31 } from 'openapi3-ts'

/** An example of a call: its input and its output. */
export interface Example {
  readonly input?: { readonly [field: string]: unknown }
  readonly output: unknown
}

/** Adds an example to the parameters, the body and the success response of an operation. */
export const withExample = (operation: oas31.OperationObject, example: Example | undefined): oas31.OperationObject => {
  if (!example) return operation
  const { input = {}, output } = example
  // Parameters and bodies are inline in the document; only refusals are references.
  const parameters = (operation.parameters ?? []) as oas31.ParameterObject[]
  const requestBody = operation.requestBody as oas31.RequestBodyObject | undefined
  const { responses = {} } = operation
  // Beside bytes the fields come in the query, and in JSON they come in the body.
  const sent = requestBody?.content['application/octet-stream'] ? [] : parameters.map(({ name }) => name)
  const body = Object.fromEntries(Object.entries(input).filter(([name]) => !sent.includes(name)))
  const good = responses[200] as oas31.ResponseObject | undefined
  return {
    ...operation,
    ...(parameters.length > 0 && {
      parameters: parameters.map(one => (Object.hasOwn(input, one.name) ? { ...one, example: input[one.name] } : one)),
    }),
    ...(requestBody && { requestBody: { ...requestBody, content: inJson(requestBody.content, { example: body }) } }),
    ...(operation['x-stream'] === 'socket' && framesOf(output as { client: unknown; server: unknown })),
    ...(good && { responses: { ...responses, 200: { ...good, content: answered(good.content ?? {}, output) } } }),
  }
}

const inJson = (content: oas31.ContentObject, example: object): oas31.ContentObject => ({
  ...content,
  ...(content['application/json'] && { 'application/json': { ...content['application/json'], ...example } }),
})

/** The success response with its example; binary answers have none. */
const answered = (content: oas31.ContentObject, output: unknown): oas31.ContentObject =>
  Object.fromEntries(
    Object.entries(content).map(([type, media]) => {
      if (type === 'text/event-stream')
        return [type, { ...media, examples: eventsOf(output as { message: unknown; done: unknown }) }]
      return [type, output === '' ? media : { ...media, example: output }]
    }),
  )

const eventsOf = ({ message, done }: { message: unknown; done: unknown }): oas31.ExamplesObject => ({
  message: { value: { event: 'message', data: message } },
  done: { value: { event: 'done', data: done } },
  error: {
    value: {
      event: 'error',
      data: {
        message: 'the credential of this stream was revoked or has expired: sign in again, or use another token',
        reason: 'unauthenticated',
      },
    },
  },
})

const framesOf = ({ client, server }: { client: unknown; server: unknown }): object => ({
  'x-client-example': client,
  'x-server-example': server,
})
