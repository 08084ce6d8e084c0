import { ConfigFile } from '../../sdk/node/files/config-file.js'
import type { writeAtomic } from '../../sdk/node/files/files.js'

/** The settings file, from the workspace. */
export const FILE = '.sandbox/config/settings.json'

/** The settings file in the workspace. */
export class SettingsFile extends ConfigFile {
  constructor(workspace: string, write?: typeof writeAtomic) {
    super(workspace, FILE, 'settings', write)
  }
}
