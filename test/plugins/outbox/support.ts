import { request, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http'
import type { Test } from 'tap'
import { daemonWith, type Support, type SupportOptions } from '../../support/daemon.js'
import { People } from '../../support/people.js'

/** `mai` is a maintainer, `cas` a collaborator, `vic` a viewer, `ada` a viewer with the area `site`. */
export const outboxWith = async (
  t: Test,
  groups: readonly string[],
  options: SupportOptions = {},
): Promise<Support> => {
  const people = new People()
  people.add('mai@example.org', 'maintainer')
  people.add('cas@example.org', 'collaborator')
  people.add('vic@example.org', 'viewer')
  people.add('ada@example.org', 'viewer', ['site'])
  const fakes = { ...people.fakes, 'areas.reach': () => ({ folders: [{ path: 'site', access: 'read' as const }] }) }
  const daemon = await daemonWith(t, groups, { ...options, fakes: { ...fakes, ...options.fakes } })
  people.admit(daemon)
  return daemon
}

/** An answer as it was sent. */
export interface SentPage {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** Asks for a path as it is written, without a credential: `fetch` would change it. */
export const askPage = (
  url: string,
  path: string,
  { method = 'GET', ...headers }: OutgoingHttpHeaders & { readonly method?: string } = {},
): Promise<SentPage> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const asked = request({ hostname, port, path, method, headers, agent: false }, answer => {
      const pieces: Buffer[] = []
      answer.on('data', (piece: Buffer) => pieces.push(piece))
      answer.on('error', reject)
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(pieces) }),
      )
    })
    asked.on('error', reject)
    asked.end()
  })

/** The path of an address. */
export const pathOfUrl = (url: string | undefined): string => new URL(url ?? 'http://nowhere').pathname
