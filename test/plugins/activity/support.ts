import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { KERNEL } from '../../../kernel/events.js'
import type { ActivityEvent, ActivityInput } from '../../../plugins/activity/contract.js'
import type { Caller } from '../../../sdk/types.js'
import type { Support } from '../../support/daemon.js'

/** What a group tells the record, as a caller of its own. */
export const record = (
  daemon: Support,
  told: ActivityInput,
  caller: Partial<Caller> = {},
): Promise<{ id: string; seq: number; at: number }> =>
  daemon.kernel.calls.answer('activity.record', told, {
    ...KERNEL,
    caller: { ...KERNEL.caller, ...caller },
  }) as Promise<{ id: string; seq: number; at: number }>

/** Every line of the record as it lies on the disk. */
export const storedLines = ({ data }: { data: string }): string[] => {
  const folder = join(data, 'activity', 'days')
  return !existsSync(folder)
    ? []
    : readdirSync(folder)
        .sort()
        .flatMap(name => readFileSync(join(folder, name), 'utf8').split('\n').filter(Boolean))
}

export const stored = (daemon: { data: string }): ActivityEvent[] =>
  storedLines(daemon).flatMap(line => (line.endsWith('}') ? [JSON.parse(line) as ActivityEvent] : []))
