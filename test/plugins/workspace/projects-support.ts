import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '../../../sdk/client.js'
import type { TerminalSession } from '../../../plugins/system/contract.js'

const LOOK_MS = 100
const PATIENCE_MS = 90_000

/** Asks until something is so. */
export const until = async <T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> => {
  for (let waited = 0; waited < PATIENCE_MS; waited += LOOK_MS) {
    const found = await ask()
    if (found !== undefined && found !== false) return found
    await delay(LOOK_MS)
  }
  throw new Error(`not so after ${PATIENCE_MS} ms: ${what}`)
}

/** A terminal whose programs have ended. */
export const endOf = (client: Client, name: string): Promise<TerminalSession> =>
  until(`the terminal ${name} has ended`, async () =>
    (await client.call('GET /system/terminals')).sessions.find(session => session.name === name && !session.running),
  )

/** What a terminal showed. */
export const shownIn = async (client: Client, name: string): Promise<string> =>
  (await client.call('GET /system/terminals/{name}/scrollback', { name })).text
