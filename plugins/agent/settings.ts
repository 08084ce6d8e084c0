import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Whether running turns go on by themselves after a restart: what the workspace's settings file says, else no. */
export const autoResumeOnRestart = async (workspace: string): Promise<boolean> => {
  try {
    const settings: unknown = JSON.parse(await readFile(join(workspace, '.sandbox', 'config', 'settings.json'), 'utf8'))
    return (settings as { autoResumeOnRestart?: unknown } | null)?.autoResumeOnRestart === true
  } catch {
    // No file, or one that does not parse, reads as every key's default.
    return false
  }
}
