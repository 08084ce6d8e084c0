import type { FetchLike } from '@modelcontextprotocol/client'

/** What one answer, or one event of a stream, may hold. */
const MOST_BYTES = 16 * 1024 * 1024
const NEWLINE = 10

/** Asks as another one does, and reads no line that would fill the memory. */
export const boundedFetch =
  (ask: FetchLike): FetchLike =>
  async (url, init) => {
    const response = await ask(url, init)
    if (!response.body) return response
    const events = response.headers.get('content-type')?.startsWith('text/event-stream')
    let bytes = 0
    const counted = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform: (piece, controller) => {
          // Events end with their lines; any other answer is one whole.
          const end = events ? piece.lastIndexOf(NEWLINE) : -1
          bytes = end < 0 ? bytes + piece.length : piece.length - end - 1
          if (bytes > MOST_BYTES)
            controller.error(new Error(`the server answered more than ${MOST_BYTES} bytes at once`))
          else controller.enqueue(piece)
        },
      }),
    )
    return new Response(counted, response)
  }
