import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SafetyPolicy, SafetyRule, SafetyVerdict } from '../../../plugins/safety/contract.js'
import { USUAL_POLICY } from '../../../plugins/safety/policy/compiled-policy.js'
import type { Support } from '../../support/daemon.js'

/** A policy with these rules. */
export const policyOf = (rules: readonly SafetyRule[] = [], more: Partial<SafetyPolicy> = {}): SafetyPolicy => ({
  ...structuredClone(USUAL_POLICY),
  rules: [...rules],
  ...more,
})

/** A rule about commands of a class. */
export const ruleOf = (id: string, more: Partial<SafetyRule> = {}): SafetyRule => ({
  id,
  label: `Rule ${id}`,
  target: 'command',
  match: { class: 'files.destructive' },
  verdict: 'deny',
  ...more,
})

/** The newest entries of the log. */
export const verdicts = async ({ client }: Pick<Support, 'client'>, limit = 100): Promise<SafetyVerdict[]> =>
  (await client.call('GET /safety/verdicts', { limit })).verdicts

/** Every byte of the journals of the group. */
export const rawLog = (data: string): string => {
  const folder = join(data, 'journals', 'safety')
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    .join('\n')
}
