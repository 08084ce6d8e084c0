import { signal } from '@preact/signals-core'
import type { KeyCommand } from '../../data/keys.js'
import { shownExtensions } from '../../data/extensions/shown-extensions.js'

const loaded = signal<(() => readonly KeyCommand[]) | undefined>(undefined)
let asked = false

/** The commands of extensions; their code is loaded once an extension has one. */
export const commandsOfExtensions = (): readonly KeyCommand[] => {
  if (!asked && shownExtensions.value.some(({ manifest }) => manifest.contributes?.commands?.length)) {
    asked = true
    import('./extension-commands.js').then(
      ({ extensionCommands }) => {
        loaded.value = extensionCommands
      },
      () => {
        asked = false
      },
    )
  }
  return loaded.value?.() ?? []
}
