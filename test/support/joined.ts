import type { OpenedSession } from '../../sdk/kernel.js'
import type { Role } from '../../sdk/types.js'
import { createClient, type Client } from '../../sdk/client.js'
import type { RunningDaemon, Support } from './daemon.js'

/** A signed-in person whom the owner invited. */
export interface Joined {
  readonly email: string
  readonly session: string
  readonly client: Client
}

/** The owner invites a person, who accepts the invitation. */
export const joined = async (
  { url, client }: Pick<Support | RunningDaemon, 'url' | 'client'>,
  name: string,
  role: Exclude<Role, 'owner'>,
  areas?: string[],
): Promise<Joined> => {
  const { invitation } = await client.call('POST /members', { role, ...(areas && { areas }) })
  const response = await fetch(`${url}/system/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ invite: invitation!.code, name }),
  })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  const { token, email } = (await response.json()) as OpenedSession
  return { email, session: token, client: createClient({ url, session: token, retry: { attempts: 0 } }) }
}
