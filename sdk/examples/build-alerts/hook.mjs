// A background program that takes reports of builds at its port, and passes failed ones on to automations.
import { createServer } from 'node:http'

const { PORT, SANDBOX_DAEMON, SANDBOX_EXTENSION_TOKEN } = process.env

const messageOf = ({ id, project, log = '' }) => ({
  provider: 'builds',
  type: 'failed',
  // The same build reported twice starts nothing twice.
  id: String(id),
  channelId: String(project),
  author: { id: 'builds', name: 'Builds' },
  content: String(log).slice(-4000),
  timestamp: new Date().toISOString(),
})

const dispatched = report =>
  fetch(`${SANDBOX_DAEMON}/listeners/builds/dispatch`, {
    method: 'POST',
    headers: { 'x-sandbox-extension': SANDBOX_EXTENSION_TOKEN, 'content-type': 'application/json' },
    body: JSON.stringify(messageOf(report)),
  })

createServer(async (request, response) => {
  try {
    let body = ''
    for await (const piece of request) body += piece
    const report = JSON.parse(body)
    const answer = report.state === 'failed' ? await dispatched(report) : undefined
    response.writeHead(answer?.status ?? 204).end(await answer?.text())
  } catch (error) {
    response.writeHead(400).end(String(error))
  }
}).listen(Number(PORT), '127.0.0.1')
