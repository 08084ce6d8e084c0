import type { Test } from 'tap'
import type { Automation, AutomationRow, AutomationRun } from '../../plugins/automations/contract.js'
import { daemonWith, type Support, type SupportOptions } from './daemon.js'
import { readUntil } from './changes.js'

/** A daemon with automations and what they use. */
export const automationsDaemon = (
  t: Test,
  options: SupportOptions = {},
  more: readonly string[] = [],
): Promise<Support> =>
  daemonWith(
    t,
    ['automations', 'agent', 'agents', 'activity', 'settings', 'safety', 'system', 'usage', ...more],
    options,
  )

/** An automation that is on, with what a test says about it. */
export const automation = (id: string, more: Partial<Automation> & Pick<Automation, 'trigger'>): Automation => ({
  id,
  prompt: 'say done',
  enabled: true,
  ...more,
})

/** The automation as it stands once something holds of it; looks again at every event of automations. */
export const until = (
  { client }: Pick<Support, 'client'>,
  id: string,
  holds: (row: AutomationRow) => boolean,
): Promise<AutomationRow> => readUntil(client, 'automations', () => client.call('GET /automations/{id}', { id }), holds)

/** Waits until an automation has so many runs and none is running. */
export const settled = (daemon: Pick<Support, 'client'>, id: string, runs: number): Promise<AutomationRow> =>
  until(daemon, id, row => row.runs.length >= runs && !row.running)

/** Its runs, newest first. */
export const runsOf = async ({ client }: Pick<Support, 'client'>, id: string): Promise<AutomationRun[]> =>
  (await client.call('GET /automations/{id}', { id })).runs
