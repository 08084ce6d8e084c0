// The baselines of a start: `start-baseline.js bare` or `start-baseline.js koa`. Loads nothing else.
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'

const listener = async (): Promise<RequestListener> => {
  if (process.argv[2] === 'bare') return (_, res) => void res.end('ok')
  const { default: Koa } = await import('koa')
  const app = new Koa()
  app.use(context => void (context.body = 'ok'))
  return app.callback()
}

const server = createServer(await listener()).listen(0, '127.0.0.1', () => {
  process.stdout.write(
    `${JSON.stringify({ ready: true, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })}\n`,
  )
})
process.on('SIGTERM', () => process.exit(0))
