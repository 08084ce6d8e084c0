import type { SettingField, SettingKey, Settings } from '../../../../settings/contract.js'

/** The sections of the page; a setting that none of them names is under Others. */
const SECTIONS: readonly (readonly [section: string, keys: readonly SettingKey[]])[] = [
  ['Conversations', ['agentRetentionDays', 'systemPromptMode', 'systemPrompt', 'stableSystemPrompt', 'workspaceMap']],
  ['Landings', ['draftLandedMessages', 'changelogRepos']],
  ['Tools', ['hashlineEdits', 'skills', 'iqSearch']],
  ['Savings', ['outputCleaners', 'terseOutput']],
  ['Measuring savings', ['outputHoldout', 'terseHoldout', 'iqSearchHoldout']],
  [
    'Models',
    [
      'quickModel',
      'agentRunModels',
      'agentRunEffort',
      'autoTier',
      'autoTierEagerness',
      'autoFastModels',
      'searchModel',
    ],
  ],
  ['After a failure', ['autoResumeOnRestart', 'resumeAfterOutage']],
  ['Subagents', ['subagentsAtOnce', 'subagentsPerTurn', 'subagentDepth']],
  ['Network', ['network', 'networkAllow', 'networkOnly']],
  ['Automations', ['admission', 'automationFailureLimit']],
  ['Safety', ['commandRules', 'actionRules']],
]
/** These have a tab of their own. */
const APART: readonly string[] = ['rules'] satisfies SettingKey[]

/** A setting as the daemon describes it, whose key is one that this page's types know or a newer one. */
export interface ShownField extends SettingField {
  readonly key: SettingKey
}

/** The settings of each section, in their order. */
export const settingSections = (
  fields: readonly SettingField[],
): (readonly [section: string, fields: readonly ShownField[]])[] => {
  // A key that a newer daemon adds is shown and saved like any other.
  const shown = fields.filter(({ key }) => !APART.includes(key)) as ShownField[]
  const named = SECTIONS.map(
    ([section, keys]) => [section, keys.flatMap(key => shown.filter(field => field.key === key))] as const,
  )
  const others = shown.filter(({ key }) => !SECTIONS.some(([, keys]) => keys.includes(key)))
  return [...named, ['Others', others] as const].filter(([, list]) => list.length > 0)
}

/** A value as it is edited. */
export const settingText = (value: unknown): string =>
  Array.isArray(value)
    ? value.join('\n')
    : typeof value === 'object' && value !== null
      ? Object.entries(value)
          .map(([name, verdict]) => `${name}: ${String(verdict)}`)
          .join('\n')
      : String(value)

/** The value of an edited text. */
export const settingValue = (type: SettingField['type'], text: string): Settings[SettingKey] | {} => {
  switch (type) {
    case 'boolean':
      return text === 'true'
    case 'number':
      return Number(text)
    case 'string':
    case 'enum':
      return text
    case 'list':
      return linesIn(text)
    case 'object':
      return Object.fromEntries(
        linesIn(text).map(line => {
          const [name = '', value = ''] = line.split(':', 2)
          return [name.trim(), value.trim()]
        }),
      )
  }
}

/** The lines of a text that are not empty. */
export const linesIn = (text: string): string[] =>
  text
    .split('\n')
    .map(line => line.trim())
    .filter(Boolean)
