import { refuse, type Context, type Handlers, type Host } from '../../../sdk/index.js'
import { usesConnection } from '../../../sdk/node/access/turns/turn-connections.js'
import { record } from '../../../sdk/node/record/record.js'
import type { Entries } from '../records/entries.js'
import type { Vault } from '../records/vault.js'
import type { OneTimeCode, OneTimeCodeCalls } from './contract.js'
import { codeAt, SEED, SEED_EXPECTED } from './seed.js'

/** Kinds of accounts of people, which no unattended turn without a persona uses. */
const ACCOUNTS: ReadonlySet<string> = new Set(['browser', 'identity'])

export interface OneTimeCodeDeps {
  readonly entries: () => Pick<Entries, 'get' | 'open'>
  readonly vault: Pick<Vault, 'assertOpen'>
}

/** The codes of connections, and the call that answers them to people. */
export interface OneTimeCodes {
  of(id: string): Promise<OneTimeCode>
  readonly calls: Handlers<OneTimeCodeCalls>
}

/** Serves the codes of connections that hold a seed. */
export const oneTimeCodes = (
  host: Pick<Host, 'call' | 'serves' | 'log'>,
  { entries, vault }: OneTimeCodeDeps,
): OneTimeCodes => {
  const of = async (id: string, context?: Context) => {
    const turn = context?.caller.turn
    if (context && !usesConnection(context.caller, id))
      refuse('forbidden', `${id} is not among the connections that this turn may use: its persona names them`)
    const found = await entries().get(id)
    if (turn?.accounts === false && ACCOUNTS.has(found.kind))
      refuse(
        'forbidden',
        `${id} is an account of a person, and nobody watches this turn: give it a persona that names it`,
      )
    const field = found.handler?.seedField?.(found.config) ?? SEED
    if (!found.secrets.includes(field))
      refuse('conflict', `${id} holds no seed of one-time codes: connect one with the card otp`)
    await vault.assertOpen()
    const { entry, problem } = await entries().open(found)
    const seed = entry.secrets[field] ?? refuse('conflict', problem?.detail ?? `the seed of ${id} cannot be read`)
    const code =
      codeAt(seed, Date.now())
      ?? refuse('conflict', `no code can be made from the seed of ${id}: ${SEED_EXPECTED}; store it anew`)
    const entryOfFeed = { type: 'capability.otp', outcome: 'ok' as const, extra: { id, kind: found.kind } }
    if (context) await record(host, entryOfFeed, context)
    else await record(host, { ...entryOfFeed, actor: 'sandbox:agent' })
    return code
  }
  return { of, calls: { 'GET /capabilities/{id}/otp': ({ id }, context) => of(id, context) } }
}
