import { fork } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Answer, Place } from '../sdk/host.js'
import { Refusal } from '../sdk/refusal.js'
import { Peer, type Pipe } from '../sdk/wire.js'
import { KERNEL } from './events.js'
import type { PluginManifest } from './manifest.js'
import { principalOf } from './permissions.js'
import { lastWork, type EndGroup } from './activation.js'
import { PluginLink, type KernelServices, type Registration } from './services.js'
import { ignored } from '../sdk/ignored.js'

/**
 * Activates a group in a separate process, with the same link as a group in this process. Calls `lost` when that
 * process exits.
 */
export const activateApart = async (
  kernel: KernelServices,
  manifest: PluginManifest,
  registered: Registration,
  { entry, place, lost }: { entry: string; place: Place; lost: () => void },
): Promise<EndGroup> => {
  const { name } = manifest
  const child = fork(join(place.root, 'sdk', 'child.js'), [name, pathToFileURL(entry).href, JSON.stringify(place)], {
    serialization: 'advanced',
  })
  const peer = new Peer(child as unknown as Pipe)
  const into: Answer = (call, input, context) => peer.request(call, input, { signal: context.signal, context })
  const link = new PluginLink(kernel, principalOf(manifest), into, registered)
  const gone = new Promise<void>(resolve => child.once('exit', () => resolve()))
  child.once('exit', code => {
    peer.break(new Refusal('unavailable', `${name} is not running: its process ended with ${code}`))
    lost()
  })
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', code => reject(new Error(`its process ended with ${code}`)))
    peer.answerFor = async (call, input, options) => {
      if (call === 'host.ready') return resolve()
      if (call === 'host.failed') return reject(new Error((input as { message: string }).message))
      return link.request(call, input, options)
    }
  })
  return async ms => {
    await lastWork(kernel, name, into, ms)
    await peer.request('plugin.stop', {}, { context: KERNEL }).catch(ignored('its process may have ended'))
    child.disconnect()
    const late = setTimeout(() => child.kill('SIGKILL'), 2_000)
    await gone
    clearTimeout(late)
  }
}
