import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Api } from '../../../sdk/api.js'
import type { Args, Handlers, Input, Reply } from '../../../sdk/contract.js'
import { KERNEL } from '../../../kernel/events.js'
import type { SecretsCalls } from '../../../plugins/secrets/contract.js'
import { daemonWith, type Support, type SupportOptions } from '../../support/daemon.js'
import { People } from '../../support/people.js'

/** What the record of activity was given. */
export type Recorded = Input<Api, 'activity.record'>

/** A daemon with group secrets alone, and everything that it recorded; `mai` is a maintainer, `cas` a collaborator. */
export const secretsWith = async (t: Test, options: SupportOptions = {}) => {
  const recorded: Recorded[] = []
  const people = new People()
  people.add('mai@example.org', 'maintainer')
  people.add('cas@example.org', 'collaborator')
  const fakes: Partial<Handlers<Api>> = {
    'activity.record': input => {
      recorded.push(input)
      return { id: 'a', seq: 1, at: 1 }
    },
    ...options.fakes,
  }
  const daemon = await daemonWith(t, ['secrets'], { ...options, fakes })
  people.admit(daemon)
  return { daemon, recorded }
}

const AS = { ...KERNEL, trusted: false }

/** Makes a call that has no route, as another group does. */
export const inner = <C extends keyof SecretsCalls & string>(
  { kernel }: Pick<Support, 'kernel'>,
  call: C,
  ...[input]: Args<Input<Api, C>>
): Promise<Reply<Api, C>> => kernel.calls.answer(call, input ?? {}, AS) as Promise<Reply<Api, C>>

/** The files below a folder that hold some bytes, whatever lies around them. */
export const filesWith = (folder: string, bytes: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter(path => readFileSync(path).includes(bytes))

/** Opens a store of the simplest kind. */
export const openVaultOf = ({ client }: Pick<Support, 'client'>) =>
  client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
