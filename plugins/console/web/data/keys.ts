import { signal } from '@preact/signals-core'

/** Something that a person can start from the keyboard or the palette. */
export interface KeyCommand {
  readonly id: string
  readonly label: string
  /** Under which heading the list of keys shows it. */
  readonly group: string
  /** Strokes such as `mod+k`, `shift+l` or `g f`; without any, the palette alone offers it. */
  readonly keys?: string
  /** Only keys start it; the palette does not list it. */
  readonly keysOnly?: true
  readonly run: () => void
}

/** A key press. */
export interface PressedKey {
  readonly key: string
  readonly ctrlKey: boolean
  readonly metaKey: boolean
  readonly altKey: boolean
  readonly shiftKey: boolean
}

const STORED = 'sandbox.letters'

/** Whether keys without a modifier start anything: speech input may want them off. */
export const letterKeys = signal(true)

/** Turns keys without a modifier on or off in this browser. */
export const setLetterKeys = (on: boolean): void => {
  letterKeys.value = on
  try {
    if (on) localStorage.removeItem(STORED)
    else localStorage.setItem(STORED, 'off')
  } catch {
    // It is kept for this tab alone.
  }
}

/** Reads whether this browser turned them off. */
export const readLetterKeys = (): void => {
  try {
    letterKeys.value = localStorage.getItem(STORED) !== 'off'
  } catch {
    // Nothing is kept: they are on.
  }
}

const sources: (() => readonly KeyCommand[])[] = []

/** Offers commands until the returned function is called; if two sources use the same keys, the newest wins. */
export const offerCommands = (source: () => readonly KeyCommand[]): (() => void) => {
  sources.unshift(source)
  return () => {
    sources.splice(sources.indexOf(source), 1)
  }
}

/** Every command that can be started now. */
export const commandsNow = (): readonly KeyCommand[] => {
  const byId = new Map<string, KeyCommand>()
  for (const command of sources.flatMap(source => source())) if (!byId.has(command.id)) byId.set(command.id, command)
  return [...byId.values()]
}

/** A key as commands name it: `mod+k`, `alt+arrowup`, `shift+l`, `?`. */
export const strokeOf = ({ key, ctrlKey, metaKey, altKey, shiftKey }: PressedKey): string =>
  [
    ...(ctrlKey || metaKey ? ['mod'] : []),
    ...(altKey ? ['alt'] : []),
    ...(shiftKey && /^(?:\p{L}|[A-Z]\w+)$/u.test(key) ? ['shift'] : []),
    key === ' ' ? 'space' : key.toLowerCase(),
  ].join('+')

/** The command that a stroke completes, or `waits` if another key may complete one. */
export const commandFor = (
  commands: readonly KeyCommand[],
  before: string,
  stroke: string,
): KeyCommand | 'waits' | undefined => {
  const whole = before ? `${before} ${stroke}` : stroke
  return (
    commands.find(({ keys }) => keys === whole)
    ?? (commands.some(({ keys }) => keys?.startsWith(`${whole} `)) ? 'waits' : undefined)
  )
}
