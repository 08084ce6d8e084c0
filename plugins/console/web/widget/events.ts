/** One event of a stream (HTML standard, 9.2.6). */
export interface StreamEvent {
  readonly name: string
  readonly data: unknown
}

/** The events of an answer; ends with it. */
export async function* chatEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent, void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      text += decoder.decode(value, { stream: true })
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        const field = (name: string) =>
          block
            .split('\n')
            .filter(line => line.startsWith(`${name}: `))
            .map(line => line.slice(name.length + 2))
            .join('\n')
        const data = field('data')
        if (data) yield { name: field('event'), data: JSON.parse(data) as unknown }
      }
    }
  } finally {
    void reader.cancel().catch(() => undefined)
  }
}
