import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { ApplyFrame, Capability } from '../../../plugins/capabilities/contract.js'
import type { Api } from '../../../sdk/api.js'
import type { Call, Context, Handlers, Input, Reply } from '../../../sdk/contract.js'
import { Refusal } from '../../../sdk/index.js'
import { daemonWith, type Support, type SupportOptions } from '../../support/daemon.js'

/** A store of secrets in memory, as the group of secrets serves it. */
export interface FakeVault {
  readonly values: Map<string, string>
  open: boolean
  readonly fakes: Partial<Handlers<Api>>
}

export const vaultFake = (): FakeVault => {
  const values = new Map<string, string>()
  const vault: FakeVault = {
    values,
    open: true,
    fakes: {
      'secrets.names': () => ({ names: [...values.keys()], open: vault.open, made: true, bound: false }),
      'secrets.get': ({ name }) => {
        if (!vault.open) throw new Refusal('unavailable', 'the store of secrets is locked')
        const value = values.get(name)
        return value === undefined ? {} : { value }
      },
      'secrets.put': ({ name, value }) => {
        if (!vault.open) throw new Refusal('unavailable', 'the store of secrets is locked')
        values.set(name, value)
        return { ok: true }
      },
      'secrets.drop': ({ name }) => {
        for (const key of [...values.keys()])
          if (key === name || (name.endsWith('/') && key.startsWith(name))) values.delete(key)
        return { ok: true }
      },
      'secrets.move': ({ from, to }) => {
        for (const [key, value] of [...values]) {
          if (!key.startsWith(`${from}/`)) continue
          values.delete(key)
          values.set(`${to}/${key.slice(from.length + 1)}`, value)
        }
        return { ok: true }
      },
    },
  }
  return vault
}

/** The daemon with this group and a store of secrets. */
export const capabilitiesDaemon = async (
  t: Test,
  { fakes, ...options }: SupportOptions = {},
): Promise<{ daemon: Support; vault: FakeVault }> => {
  const vault = vaultFake()
  const daemon = await daemonWith(t, ['capabilities'], { fakes: { ...vault.fakes, ...fakes }, ...options })
  return { daemon, vault }
}

/** Connects something and answers every step. */
export const add = async ({ client }: Pick<Support, 'client'>, capability: Capability): Promise<ApplyFrame[]> => {
  const frames: ApplyFrame[] = []
  for await (const frame of await client.call('POST /capabilities', capability)) frames.push(frame)
  return frames
}

/** A program of a test's own, in its workspace. */
export const program = ({ workspace }: Pick<Support, 'workspace'>, name: string, text: string): string => {
  const path = join(workspace, name)
  writeFileSync(path, text)
  chmodSync(path, 0o755)
  return path
}

const AS: Context = {
  caller: { kind: 'plugin', actor: 'sandbox:test', role: 'owner' },
  signal: new AbortController().signal,
  trusted: false,
}

/** Makes a call without a route. */
export const inner = <C extends Call<Api>>(
  { kernel }: Pick<Support, 'kernel'>,
  call: C,
  input: Input<Api, C>,
  signal = AS.signal,
): Promise<Reply<Api, C>> => kernel.calls.answer(call, input, { ...AS, signal }) as Promise<Reply<Api, C>>
