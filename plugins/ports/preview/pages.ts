import type { IncomingMessage } from 'node:http'
import { MESSAGE_PAGE_HEADERS, messagePage, wantsPage } from '../../../sdk/node/pages/message-page.js'

/** An answer of the proxy itself. */
export interface ProxyAnswer {
  readonly status: 400 | 403 | 404 | 502
  readonly title: string
  readonly text: string
  /** The page asks again by itself. */
  readonly again?: true
}

/** The same for every name that is none: it does not say which names there are. */
export const UNKNOWN_NAME: ProxyAnswer = {
  status: 404,
  title: 'No preview has this address',
  text: 'Copy the whole address again from where you found it.',
}

export const NOTHING_FORWARDED: ProxyAnswer = {
  status: 502,
  title: 'Nothing is forwarded here',
  text: 'Somebody ended this forward, or its program ended. Forward the port again in the sandbox.',
}

export const NOT_RUNNING: ProxyAnswer = {
  status: 502,
  title: 'This program does not run',
  text: 'Start it in the sandbox: its address stays the same.',
}

export const STARTING: ProxyAnswer = {
  status: 502,
  title: 'This program does not listen yet',
  text: 'It runs, and this page asks again every two seconds.',
  again: true,
}

/** For a forward whose program does not listen at the moment. */
export const notListening = (port: number): ProxyAnswer => ({
  status: 502,
  title: `Nothing is listening on port ${port}`,
  text: 'Start the program again in the same terminal within 24 hours of its end: this page asks every two seconds.',
  again: true,
})

export const FOREIGN_PAGE: ProxyAnswer = {
  status: 403,
  title: 'A page of another site may not do this',
  text: 'Only pages of this preview send changes to it or open WebSockets on it.',
}

/** Its headers and body: a page for browsers, JSON for other clients. */
export const answerBody = (
  req: IncomingMessage,
  { title, text, again }: ProxyAnswer,
): { headers: { readonly [name: string]: string }; body: string } => {
  const headers = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', connection: 'close' }
  if (!wantsPage(req.headers.accept))
    return {
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ message: `${title}: ${text}` }),
    }
  return {
    headers: { ...headers, ...MESSAGE_PAGE_HEADERS, ...(again && { refresh: '2' }) },
    body: messagePage(title, text),
  }
}
