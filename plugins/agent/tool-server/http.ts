import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'

/** Answers a Node request with a Fetch handler; cancels the response body when the connection closes. */
export const answerBy = async (
  request: IncomingMessage,
  response: ServerResponse,
  fetch: (request: Request) => Promise<Response>,
): Promise<void> => {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const { method = 'GET', url = '/' } = request
  const headers = new Headers(
    Object.entries(request.headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as [string, string]],
    ),
  )
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const answer = await fetch(
    new Request(new URL(url, 'http://sandbox.invalid'), {
      method,
      headers,
      signal: gone.signal,
      ...(hasBody && { body: Readable.toWeb(request) as ReadableStream, duplex: 'half' }),
    }),
  )
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  for await (const piece of answer.body ?? [])
    if (!response.write(piece)) await once(response, 'drain', { signal: gone.signal })
  response.end()
}
