import type { Settings } from '../../settings/contract.js'

/** The instructions that the settings put in place of the sandbox's own; undefined: none. */
export const customPrompt = (
  settings: Pick<Settings, 'systemPromptMode' | 'systemPrompt'> | undefined,
): string | undefined => {
  if (settings?.systemPromptMode !== 'custom') return undefined
  return settings.systemPrompt.trim() || undefined
}
