import type { KeyCommand } from '../../data/keys.js'
import { fleet } from '../../data/live.js'
import { sectionsOf } from '../../data/roster.js'
import { goTo, place } from '../../data/route.js'
import { person, signOut } from '../../data/session/session.js'
import { chooseTheme } from '../../data/theme.js'
import { reaches } from '../../pages/registry.js'
import { focusSoon, moveRow, usePart } from '../lists/rows.js'
import { listedPages } from '../visible.js'
import { isWide } from '../wide.js'

const GO = 'Go to'
const MOVE = 'Move'
const PAGE = 'Page'

/** The conversation before or after the shown one, in the order of the board. */
const goToNeighbour = (by: 1 | -1): void => {
  const ids = [...sectionsOf(fleet.value.cards.values()).values()].flat().map(({ id }) => id)
  const [page, id] = place.value
  const at = page === 'c' && id !== undefined ? ids.indexOf(id) : -1
  const next = at < 0 ? ids.at(by > 0 ? 0 : -1) : ids[at + by]
  if (next !== undefined) goTo('c', next)
}

/** The parent of an address: from a file to the files, from those to the conversation, from a part to its page. */
const goBack = (): void => {
  const [page = 'fleet', id, part, ...file] = place.value
  if (page === 'c' && id !== undefined && part !== undefined) goTo('c', id, ...(file.length && !isWide() ? [part] : []))
  else if (page === 'c' || page === 'new' || id === undefined) goTo('fleet')
  else goTo(page)
}

/** The commands of the keyboard and the palette on every page. */
export const shellCommands = (open: (what: 'palette' | 'help') => void): readonly KeyCommand[] => [
  { id: 'palette', label: 'Go to or do …', group: PAGE, keys: 'mod+k', keysOnly: true, run: () => open('palette') },
  { id: 'help', label: 'Show all keys', group: PAGE, keys: '?', run: () => open('help') },
  ...listedPages()
    .filter(({ narrow }) => !narrow)
    .map(({ name, label, key }): KeyCommand => ({
      ...{ id: `go ${name}`, label, group: GO, run: () => goTo(name) },
      ...(key && { keys: `g ${key}` }),
    })),
  ...(reaches(person.value?.role, 'collaborator')
    ? [
        {
          ...{ id: 'new', label: 'New conversation', group: PAGE, keys: 'c' },
          run: () => {
            goTo('new')
            focusSoon('composer')
          },
        },
      ]
    : []),
  {
    ...{ id: 'search', label: 'Search conversations', group: PAGE, keys: '/' },
    run: () => {
      if (usePart('search', 'focus')) return
      goTo('fleet')
      focusSoon('search')
    },
  },
  { id: 'down', label: 'Next row', group: MOVE, keys: 'j', keysOnly: true, run: () => moveRow(1) },
  { id: 'up', label: 'Previous row', group: MOVE, keys: 'k', keysOnly: true, run: () => moveRow(-1) },
  { id: 'back', label: 'Back', group: MOVE, keys: 'escape', keysOnly: true, run: goBack },
  {
    ...{ id: 'next conversation', label: 'Next conversation', group: MOVE, keys: 'alt+arrowdown' },
    run: () => goToNeighbour(1),
  },
  {
    ...{ id: 'previous conversation', label: 'Previous conversation', group: MOVE, keys: 'alt+arrowup' },
    run: () => goToNeighbour(-1),
  },
  { id: 'theme light', label: 'Light theme', group: PAGE, run: () => chooseTheme('light') },
  { id: 'theme dark', label: 'Dark theme', group: PAGE, run: () => chooseTheme('dark') },
  { id: 'theme system', label: 'Theme of the system', group: PAGE, run: () => chooseTheme('system') },
  { id: 'sign out', label: 'Sign out', group: PAGE, run: () => void signOut() },
]
