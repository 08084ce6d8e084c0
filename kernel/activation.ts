import { createHost, type Activate, type Answer, type Place } from '../sdk/host.js'
import { KERNEL } from './events.js'
import type { PluginManifest } from './manifest.js'
import { principalOf } from './permissions.js'
import { PluginLink, type KernelServices, type Registration } from './services.js'

/** Stops a started group: gives its last work the given ms, then deactivates it. */
export type EndGroup = (ms: number) => Promise<void>

/** Activates a group in this process. */
export const activateHere = async (
  kernel: KernelServices,
  manifest: PluginManifest,
  registered: Registration,
  { activate, place }: { activate: Activate; place: Place },
): Promise<EndGroup> => {
  const { name } = manifest
  const { host, answer } = createHost(name, place, {
    request: (call, input, options) => link.request(call, input, options),
  })
  const link = new PluginLink(kernel, principalOf(manifest), answer, registered)
  try {
    await activate(host)
  } catch (error) {
    await answer('plugin.stop', {}, KERNEL)
    throw error
  }
  return async ms => {
    await lastWork(kernel, name, answer, ms)
    await answer('plugin.stop', {}, KERNEL)
    kernel.events.drop(name)
    kernel.calls.close(name)
  }
}

/** Gives a group the given ms to save its work; a failure or a timeout is logged and does not stop the shutdown. */
export const lastWork = async (kernel: KernelServices, name: string, answer: Answer, ms: number): Promise<void> => {
  const work = answer('plugin.stopping', {}, KERNEL)
  await withDeadline(ms, work, 'took too long to stop').catch(error => kernel.log(name).warn(String(error)))
}

/** Resolves as the work does, or rejects with this message after the given ms. */
export const withDeadline = async <T>(ms: number, work: Promise<T>, sentence: string): Promise<T> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(new Error(sentence)), ms)))
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
