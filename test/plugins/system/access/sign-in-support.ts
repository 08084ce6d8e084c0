import type { OpenedSession } from '../../../../sdk/kernel.js'
import type { Support } from '../../../support/daemon.js'
import type { Issuer } from '../../../support/servers/issuer.js'

/** An answer of the daemon. */
export interface Answer<T = { [key: string]: unknown; message: string }> {
  readonly status: number
  readonly headers: Headers
  readonly body: T
}

/** One request with exactly these headers. */
export const ask = async (
  url: string,
  call: string,
  body?: object,
  headers: { [name: string]: string } = {},
): Promise<Answer> => {
  const [method = '', path = ''] = call.split(' ')
  const sent = body
    ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } }
    : { headers }
  const response = await fetch(url + path, { method, ...sent })
  const { status, headers: answered } = response
  const text = await response.text()
  const isJson = answered.get('content-type')?.startsWith('application/json')
  return { status, headers: answered, body: isJson ? (JSON.parse(text) as Answer['body']) : { message: text } }
}

/** The header with a bearer. */
export const bearer = (token: string): { authorization: string } => ({ authorization: `Bearer ${token}` })

/** A nonce for a sign-in page. */
export const nonceOf = async (url: string): Promise<string> =>
  String((await ask(url, 'GET /system/sign-in')).body.nonce)

/** Presents an identity token. */
export const present = (
  url: string,
  token: string,
  body: object = {},
  headers: { [name: string]: string } = {},
): Promise<Answer> => ask(url, 'POST /system/session', body, { ...bearer(token), ...headers })

/** Signs a person in with a valid token of an issuer. */
export const signInAs = async (
  { url }: Pick<Support, 'url'>,
  issuer: Issuer,
  email: string,
  body: object = {},
): Promise<Answer<OpenedSession>> =>
  (await present(
    url,
    await issuer.token({ email, nonce: await nonceOf(url) }),
    body,
  )) as unknown as Answer<OpenedSession>
