/** The modes that a program has set in its terminal, by tmux's names. */
export interface Modes {
  readonly [name: string]: number
}

/** The formats that are requested from tmux, in this order. */
export const MODES = [
  'cursor_x',
  'cursor_y',
  'pane_height',
  'alternate_on',
  'cursor_flag',
  'keypad_cursor_flag',
  'keypad_flag',
  'mouse_standard_flag',
  'mouse_button_flag',
  'mouse_all_flag',
  'mouse_sgr_flag',
] as const

/** The XTerm control sequence for each mode that is on (1) or off (0). */
const SWITCHES: readonly (readonly [mode: (typeof MODES)[number], when: 0 | 1, sequence: string])[] = [
  ['keypad_cursor_flag', 1, '\x1b[?1h'],
  ['keypad_flag', 1, '\x1b='],
  ['mouse_standard_flag', 1, '\x1b[?1000h'],
  ['mouse_button_flag', 1, '\x1b[?1002h'],
  ['mouse_all_flag', 1, '\x1b[?1003h'],
  ['mouse_sgr_flag', 1, '\x1b[?1006h'],
  ['cursor_flag', 0, '\x1b[?25l'],
]

/** The lines of a terminal: its history, for a full-screen program the screen behind it, and the screen itself. */
export interface Screens {
  readonly history: readonly string[]
  readonly other: readonly string[]
  readonly screen: readonly string[]
  readonly modes: Modes
}

/** The text that makes an empty terminal show what another one shows, its history, cursor and modes included. */
export const drawingOf = ({ history, other, screen, modes }: Screens): string => {
  const full = modes.alternate_on === 1
  const before = full ? [...history, ...trimmed(other), '\x1b[0m\x1b[?1049h\x1b[H'] : history
  // Counted from the last row, since the window may have more rows than the screen.
  const up = screen.length - 1 - (modes.cursor_y ?? 0)
  const cursor = `\x1b[0m${up > 0 ? `\x1b[${up}A` : ''}\x1b[${(modes.cursor_x ?? 0) + 1}G`
  const switches = SWITCHES.filter(([mode, when]) => modes[mode] === when).map(([, , sequence]) => sequence)
  return (
    [...before, ...screen].join('\r\n').replace('\x1b[?1049h\x1b[H\r\n', '\x1b[?1049h\x1b[H')
    + cursor
    + switches.join('')
  )
}

/** The lines without the empty ones at the end. */
export const trimmed = (lines: readonly string[]): string[] =>
  lines.slice(0, lines.findLastIndex(line => line.trim() !== '') + 1)
