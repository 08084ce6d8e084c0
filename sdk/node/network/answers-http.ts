import { request as askHttp } from 'node:http'
import { request as askHttps, type RequestOptions } from 'node:https'
import type { Listening } from './socket-table.js'

const PATIENCE_MS = 1_500

const answers = ({ host, port }: Listening, ask: typeof askHttps): Promise<boolean> =>
  new Promise(resolve => {
    const options: RequestOptions = {
      host,
      port,
      path: '/',
      headers: { host: `localhost:${port}`, connection: 'close' },
      timeout: PATIENCE_MS,
      // A development server makes its own certificate.
      rejectUnauthorized: false,
    }
    const asked = ask(options)
    asked.on('response', response => {
      response.destroy()
      resolve(true)
    })
    asked.on('timeout', () => asked.destroy())
    asked.on('error', () => resolve(false))
    asked.on('close', () => resolve(false))
    asked.end()
  })

/** Which of HTTP and HTTPS answers there, with any status; undefined: neither. */
export const answeringScheme = async (listening: Listening): Promise<'http' | 'https' | undefined> => {
  // At this port of the machine might be a server of somebody else.
  if (listening.elsewhere) return 'http'
  if (await answers(listening, askHttp)) return 'http'
  return (await answers(listening, askHttps)) ? 'https' : undefined
}
