import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Api } from '../../../sdk/api.js'

import type { Input, Reply } from '../../../sdk/contract.js'
import { until } from '../../support/browser/browser.js'
import { daemonWith, folderOf, makeWorkspace, type Support, type SupportOptions } from '../../support/daemon.js'
import { clientOf, People } from '../../support/people.js'
import { startAccountServer, type AccountServer } from '../../support/servers/account-server.js'

/** A daemon with routed providers, whose people sign in at one server and whose models are others. */
export interface RoutedWorld {
  readonly daemon: Support
  readonly server: AccountServer
  readonly folder: string
  readonly call: Support['client']['call']
  readonly recorded: { type: string; actor?: string; extra?: unknown }[]
  /** Signs a person in at a provider; answers the id of the account. */
  signIn(provider: string, email?: string): Promise<string>
  /** Connects an account with a key; answers its id. */
  key(provider: string, key: string): Promise<string>
  /** What a run gets. */
  access(provider: string, more?: Partial<Input<Api, 'translator.endpointFor'>>): Promise<Access>
  release(bearer: string): Promise<Reply<Api, 'translator.release'>>
}
export type Access = Reply<Api, 'translator.endpointFor'>

export interface RoutedWorldOptions extends SupportOptions {
  readonly groups?: readonly string[]
  readonly folder?: string
  readonly server?: AccountServer
  /** Fields of the definitions of the routed providers, by their ids. */
  readonly providers: { readonly [id: string]: { auth?: object; [field: string]: unknown } }
}

const AS = {
  caller: { kind: 'plugin', actor: 'sandbox:agent', role: 'owner' },
  signal: new AbortController().signal,
  trusted: true,
} as const

/** A call that another group makes. */
export const innerCall = <C extends 'translator.endpointFor' | 'translator.release'>(
  { kernel }: Pick<Support, 'kernel'>,
  call: C,
  input: Input<Api, C>,
): Promise<Reply<Api, C>> => kernel.calls.answer(call, input, AS) as Promise<Reply<Api, C>>

/** The groups without turns. */
export const GROUPS = ['accounts', 'providers', 'routed']

/** Starts a daemon with routed providers. */
export const routedWorld = async (t: Test, options: RoutedWorldOptions): Promise<RoutedWorld> => {
  const { groups = GROUPS, providers, fakes, folder = folderOf(t), server: given, files, ...rest } = options
  const server = given ?? (await startAccountServer(t))
  const [workspace, data, definitions] = [join(folder, 'workspace'), join(folder, 'data'), join(folder, 'definitions')]
  for (const each of [workspace, definitions]) mkdirSync(each, { recursive: true })
  if (groups.includes('agent') && !options.folder) makeWorkspace(workspace, files)
  for (const [id, more] of Object.entries(providers)) {
    const definition = server.definition(id, { serving: 'routed', ...more })
    writeFileSync(join(definitions, `${id}.json`), JSON.stringify(definition))
  }
  const people = new People()
  for (const role of ['viewer', 'collaborator', 'maintainer'] as const) people.add(`${role}@example.org`, role)
  const recorded: RoutedWorld['recorded'] = []
  const daemon = await daemonWith(t, groups, {
    ...rest,
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
  const { call } = daemon.client
  const idsOf = async (provider: string) =>
    ((await call('GET /translator/accounts'))[provider] ?? []).map(({ name }) => name)
  return {
    daemon,
    server,
    folder,
    call,
    recorded,
    signIn: async (provider, email = 'ada@example.org') => {
      const before = await idsOf(provider)
      const { url, state } = await call('POST /translator/{provider}/connect', { provider })
      const redirectUrl = await server.approve(url, email)
      await call('POST /translator/{provider}/complete', { provider, redirectUrl, state })
      await until(async () => (await idsOf(provider)).length > before.length)
      return (await idsOf(provider)).find(id => !before.includes(id))!
    },
    key: async (provider, key) => {
      server.keys.add(key)
      const { handshake } = await call('POST /accounts/{provider}/login/start', { provider, flow: 'key' })
      return (await call('POST /accounts/{provider}/login/finish', { provider, handshake, key })).id
    },
    access: (provider, more = {}) =>
      innerCall(daemon, 'translator.endpointFor', {
        ...{ provider, model: 'm', protocol: 'chat', run: 'run-1', conversationId: 'one' },
        ...more,
      }),
    release: bearer => innerCall(daemon, 'translator.release', { bearer }),
  }
}

/** The client of a person with a role. */
export const asPerson = ({ daemon }: RoutedWorld, role: 'viewer' | 'collaborator' | 'maintainer') =>
  clientOf(daemon, `${role}@example.org`)
