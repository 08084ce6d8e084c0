import type { Contract, Host } from '../../sdk/index.js'
import { Budget } from '../../sdk/node/access/budget.js'
import { pushCalls } from './calls.js'
import { deviceIdOf } from './channels.js'
import { pushContract, type PushCalls } from './contract.js'
import { PushDelivery } from './delivery.js'
import { Devices, type PushDevice } from './devices.js'
import { examples } from './examples.js'
import { KeyPair } from './key-pair.js'
import { Outgoing } from './outgoing.js'
import { PushRates } from './rates.js'
import { peopleOf } from './recipients.js'

export const contract: Contract<PushCalls> = { ...pushContract, examples }

const TESTS = 6

/** Keeps the devices of people, and sends them notifications. */
export const activate = async (host: Host): Promise<void> => {
  const { files, log, signal, place } = host
  const failed = (what: string) => (error: unknown) =>
    void (signal.aborted || log.error(`${what} failed`, { error: String(error) }))
  const keys = new KeyPair(files, log)
  const devices = new Devices(files, log)
  const reach = async () => ({
    near: place.push?.privateNetworks ?? false,
    listeners: (await host.call('kernel.listeners')).listeners,
  })
  // Watchers are not told which device it was: its address lets anybody send to it.
  const changed = () =>
    void host.call('kernel.events.publish', { domain: 'push' }).catch(failed('publishing a change of devices'))
  const isCurrent = ({ person, channel }: PushDevice) => devices.has(person, deviceIdOf(channel))
  const delivery = new PushDelivery({ keys: () => keys.get(), reach, log, signal, isCurrent })
  const outgoing = new Outgoing({ host, devices, delivery, rates: new PushRates(), changed })
  const forget = async () => {
    if (await devices.keepOnly(new Set((await peopleOf(host)).map(({ email }) => email)))) changed()
  }

  await devices.load()
  host.on('member.removed', () => void forget().catch(failed('forgetting the devices of a former member')))
  host.boot('Devices of members', () => forget().catch(failed('forgetting the devices of former members')))
  const tests = new Budget(TESTS, Date.now, 'of one person')
  await host.serve(pushContract, pushCalls({ host, keys, devices, outgoing, reach, tests, changed }))
}
