import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Api } from '../../../sdk/api.js'
import type { Input, Reply } from '../../../sdk/contract.js'
import { daemonWith, folderOf, makeWorkspace, type Support, type SupportOptions } from '../../support/daemon.js'
import { People } from '../../support/people.js'
import { startAccountServer, type AccountServer } from '../../support/servers/account-server.js'

/** A daemon with accounts at a provider `acme`. */
export interface AccountWorld {
  readonly daemon: Support
  readonly server: AccountServer
  readonly folder: string
  readonly call: Support['client']['call']
  /** The domains of change events so far, with their keys. */
  readonly published: string[]
  readonly recorded: { type: string; extra?: unknown }[]
  /** Every answer to a route, change event and entry of the record, as JSON. */
  readonly shown: string[]
  /** Connects an account with a key. */
  key(value?: string): Promise<Reply<Api, 'POST /accounts/{provider}/login/finish'>>
}

/** What a world may begin with. */
export interface AccountWorldOptions extends SupportOptions {
  readonly server?: AccountServer
  readonly folder?: string
  readonly groups?: readonly string[]
  /** Fields of the definition of `acme`. */
  readonly acme?: { auth?: object; [field: string]: unknown }
  readonly others?: { readonly [id: string]: object }
}

/** Starts a daemon with group accounts, and a provider that it signs in to. */
export const accountWorld = async (t: Test, options: AccountWorldOptions = {}): Promise<AccountWorld> => {
  const { groups = ['accounts', 'providers'], acme = {}, others = {}, fakes, ...given } = options
  const server = options.server ?? (await startAccountServer(t))
  const folder = options.folder ?? folderOf(t)
  const [workspace, data, definitions] = [join(folder, 'workspace'), join(folder, 'data'), join(folder, 'definitions')]
  for (const each of [workspace, definitions]) mkdirSync(each, { recursive: true })
  if (groups.includes('agent') && !options.folder) makeWorkspace(workspace)
  writeFileSync(join(definitions, 'acme.json'), JSON.stringify(server.definition('acme', acme)))
  for (const [id, definition] of Object.entries(others))
    writeFileSync(join(definitions, `${id}.json`), JSON.stringify(definition))
  const people = new People()
  people.add('vic@example.org', 'viewer')
  people.add('col@example.org', 'collaborator')
  people.add('mai@example.org', 'maintainer')
  const recorded: AccountWorld['recorded'] = []
  const daemon = await daemonWith(t, groups, {
    ...given,
    workspace,
    data,
    deployment: { models: { providers: definitions } },
    fakes: {
      ...people.fakes,
      'activity.record': entry => {
        recorded.push(entry)
        return { ok: true } as never
      },
      ...fakes,
    },
  })
  people.admit(daemon)
  const published: string[] = []
  const { calls } = daemon.kernel
  const answer = calls.answer.bind(calls)
  const shown: string[] = []
  calls.answer = async (call, input, context, by) => {
    if (call === 'kernel.events.publish') published.push(JSON.stringify(input))
    if (call === 'kernel.events.publish' || call === 'activity.record') shown.push(JSON.stringify(input))
    const output = await answer(call, input, context, by)
    if (/^[A-Z]+ \//.test(call)) shown.push(JSON.stringify(output) ?? '')
    return output
  }
  const { call } = daemon.client
  return {
    daemon,
    server,
    folder,
    call,
    published,
    recorded,
    shown,
    key: async (key = [...server.keys][0]!) => {
      const { handshake } = await call('POST /accounts/{provider}/login/start', { provider: 'acme', flow: 'key' })
      return call('POST /accounts/{provider}/login/finish', { provider: 'acme', handshake, key })
    },
  }
}

const AS = {
  caller: { kind: 'plugin', actor: 'sandbox:agent', role: 'owner' },
  signal: new AbortController().signal,
  trusted: true,
} as const

/** A call that another group makes. */
export const asGroup = <C extends 'accounts.lease' | 'accounts.renew' | 'accounts.release' | 'limits.heard'>(
  { kernel }: Pick<Support, 'kernel'>,
  call: C,
  input: Input<Api, C>,
): Promise<Reply<Api, C>> => kernel.calls.answer(call, input, AS) as Promise<Reply<Api, C>>

/** The accounts of `acme`. */
export const rowsOf = async ({ call }: Pick<AccountWorld, 'call'>) =>
  (await call('GET /accounts/{provider}', { provider: 'acme' })).accounts

/** The state of an attempt. */
export const stateOf = async ({ call }: Pick<AccountWorld, 'call'>, handshake: string) =>
  (await call('GET /accounts/{provider}', { provider: 'acme' })).signIns.find(each => each.handshake === handshake)
