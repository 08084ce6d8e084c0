import { refuse, type Caller, type Handlers, type Host } from '../../sdk/index.js'
import type { Budget } from '../../sdk/node/access/budget.js'
import type { MachineReach } from '../../sdk/node/network/addresses.js'
import { assertChannel } from './channels.js'
import type { PushCalls } from './contract.js'
import type { Devices } from './devices.js'
import type { KeyPair } from './key-pair.js'
import type { Outgoing } from './outgoing.js'
import { peopleOf } from './recipients.js'

/** The dependencies of the calls. */
export interface PushCallDeps {
  readonly host: Pick<Host, 'call'>
  readonly keys: KeyPair
  readonly devices: Devices
  readonly outgoing: Outgoing
  readonly reach: () => Promise<MachineReach>
  readonly tests: Budget
  readonly changed: () => void
}

const OK = { ok: true } as const

/** Serves the calls of the group. */
export const pushCalls = ({
  host,
  keys,
  devices,
  outgoing,
  reach,
  tests,
  changed,
}: PushCallDeps): Handlers<PushCalls> => {
  /** The person whose devices a caller manages: a control token stands for the person who minted it. */
  const personOf = async ({ kind, email, tokenId }: Caller): Promise<string> => {
    if (kind === 'session' && email !== undefined) return email
    const minter =
      kind === 'token'
        ? (await host.call('kernel.token.list')).tokens.find(({ id }) => id === tokenId)?.createdBy
        : undefined
    const people = minter === undefined ? [] : await peopleOf(host)
    const member = people.find(one => one.email === minter)
    return member?.email ?? refuse('forbidden', 'a device belongs to a member: sign in, or use a token of a member')
  }

  return {
    'GET /push/config': async ({ id }, { caller }) => {
      const person = await personOf(caller)
      const { publicKey } = await keys.get()
      return { publicKey, subscribed: id !== undefined && devices.has(person, id) }
    },
    'POST /push/subscribe': async (channel, { caller }) => {
      const person = await personOf(caller)
      await assertChannel(channel, await reach())
      await devices.add(person, channel)
      changed()
      return OK
    },
    'POST /push/unsubscribe': async ({ id }, { caller }) => {
      if (await devices.remove(await personOf(caller), id)) changed()
      return OK
    },
    'POST /push/test': async (_, { caller }) => {
      const person = await personOf(caller)
      tests.spend(person)
      await keys.get()
      return { delivered: await outgoing.test(person) }
    },
    'push.send': message => {
      outgoing.send(message)
      return OK
    },
  }
}
