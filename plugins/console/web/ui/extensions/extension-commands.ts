import { conditionHolds } from '../../../../../sdk/conditions.js'
import type { KeyCommand } from '../../data/keys.js'
import { goTo, place } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { chosenCommand, extensionName, shownExtensions } from '../../data/extensions/shown-extensions.js'
import { visibleName } from '../format.js'

/** A chord of a manifest as the console names strokes. */
const strokesOf = (keybinding: string): string => keybinding.toLowerCase().replace(/\b(?:ctrl|cmd|meta)\+/g, 'mod+')

/** The commands of extensions, which their pages carry out; keys of the console itself win. */
export const extensionCommands = (): readonly KeyCommand[] => {
  const [page = '', conversation] = place.value
  const keys = { page, role: person.value?.role, ...(page === 'c' && { conversation }) }
  return shownExtensions.value.flatMap(extension => {
    const { id, manifest } = extension
    const { commands = [], views = [] } = manifest.contributes ?? {}
    return commands
      .filter(({ when }) => conditionHolds(when, keys))
      .map(({ command, title, keybinding }): KeyCommand => ({
        ...{ id: `x ${id} ${command}`, label: visibleName(title), group: visibleName(extensionName(extension)) },
        ...(keybinding !== undefined && { keys: strokesOf(keybinding) }),
        run: () => {
          chosenCommand.value = { id, command }
          const [first] = views
          if (page !== 'x' || conversation !== id) goTo('x', id, ...(first ? [first.id] : []))
        },
      }))
  })
}
