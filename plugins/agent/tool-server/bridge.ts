// Connects programs that start their tool servers themselves to the tool server of the daemon: each line of standard
// input is a message to it, each of its answers a line of standard output.
import { createInterface } from 'node:readline'

const { SANDBOX_TOOLS_URL: url = '', SANDBOX_TOOLS_TOKEN: token = '' } = process.env
const DATA = 'data:'

let version: string | undefined

const answered = (text: string): void => {
  const { result } = JSON.parse(text) as { result?: { protocolVersion?: string } }
  version ??= result?.protocolVersion
  process.stdout.write(`${text}\n`)
}

const ask = async (line: string): Promise<void> => {
  const answer = await fetch(url, {
    method: 'POST',
    body: line,
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(version !== undefined && { 'mcp-protocol-version': version }),
    },
  })
  if (!answer.ok) throw new Error(`the tool server answered ${answer.status}`)
  if (!answer.headers.get('content-type')?.includes('event-stream')) {
    const text = await answer.text()
    if (text.trim()) answered(JSON.stringify(JSON.parse(text)))
    return
  }
  let rest = ''
  for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop()!
    for (const each of lines) if (each.startsWith(DATA)) answered(each.slice(DATA.length).trim())
  }
}

const refused = (line: string, error: unknown): void => {
  const { id } = JSON.parse(line) as { id?: unknown }
  const message = error instanceof Error ? error.message : String(error)
  if (id !== undefined)
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32603, message } })}\n`)
}

for await (const line of createInterface({ input: process.stdin }))
  if (line.trim()) void ask(line).catch((error: unknown) => refused(line, error))
