import { createHost, type Activate, type Answer, type Place } from '../sdk/host.js'
import { KERNEL } from './events.js'
import type { PluginManifest } from './manifest.js'
import { principalOf } from './permissions.js'
import { PluginLink, type KernelServices, type Registration } from './services.js'

/** What ends a started group: its last work within so many ms, then its switch-off. */
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

/** Gives a group so many ms to bring its work to a safe place. */
export const lastWork = async (kernel: KernelServices, name: string, answer: Answer, ms: number): Promise<void> => {
  const work = answer('plugin.stopping', {}, KERNEL)
  await withDeadline(ms, work, 'took too long to stop').catch(error => kernel.log(name).warn(String(error)))
}

/** The result of work, or an error with this sentence when it takes longer. */
export const withDeadline = async <T>(ms: number, work: Promise<T>, sentence: string): Promise<T> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(new Error(sentence)), ms)))
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
