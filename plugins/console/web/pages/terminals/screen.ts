import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'

/** A terminal drawn on the page. */
export interface TerminalScreen {
  readonly size: () => { readonly cols: number; readonly rows: number }
  write(text: string): void
  /** Empties it, before it is filled again. */
  reset(): void
  focus(): void
  close(): void
}

/** The callbacks of a screen. */
export interface ScreenEvents {
  readonly typed: (text: string) => void
  readonly resized: (size: { readonly cols: number; readonly rows: number }) => void
  /** The person leaves the terminal with the keyboard. */
  readonly left: () => void
}

/** The colours of programs, for both themes; the first eight and their bright ones. */
const ANSI = {
  light: ['1b1f24', 'b3261e', '1a6b3c', '85500a', '2557c7', '7a3aa8', '0b6a75', '57606b'],
  lightBright: ['57606b', '8c1d18', '14532d', '6b4008', '1d449d', '5f2d85', '08525b', '1b1f24'],
  dark: ['31373f', 'ff9b93', '6fd399', 'f0bd6a', '8ab4ff', 'd3a6f5', '6ed3dd', 'e5e8ec'],
  darkBright: ['a3acb7', 'ffb8b2', '93e0b4', 'f5d194', 'adcbff', 'e3c6fa', '9be3ea', 'ffffff'],
}
const NAMES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const

const themeOf = (element: HTMLElement) => {
  const { colorScheme } = getComputedStyle(element)
  const dark =
    colorScheme.trim() === 'dark' || (colorScheme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  const [ground, ink] = dark ? ['#15181c', '#e5e8ec'] : ['#ffffff', '#1b1f24']
  const [plain, bright] = dark ? [ANSI.dark, ANSI.darkBright] : [ANSI.light, ANSI.lightBright]
  const colours = Object.fromEntries(
    NAMES.flatMap((name, at) => [
      [name, `#${plain[at]}`],
      [`bright${name.charAt(0).toUpperCase()}${name.slice(1)}`, `#${bright[at]}`],
    ]),
  )
  return {
    background: ground,
    foreground: ink,
    cursor: ink,
    selectionBackground: dark ? '#3a4a6b' : '#c6d6f7',
    ...colours,
  }
}

/** An element in place of `style`, whose text becomes a constructed style sheet, which the page's policy allows. */
const sheetElement = (element: HTMLElement, sheets: CSSStyleSheet[]): HTMLElement => {
  const sheet = new CSSStyleSheet()
  sheets.push(sheet)
  document.adoptedStyleSheets.push(sheet)
  element.hidden = true
  let text = ''
  return Object.defineProperty(element, 'textContent', {
    get: () => text,
    set: (value: string) => {
      text = value
      sheet.replaceSync(value)
    },
  })
}

/** A span whose `style` attribute is set through the object model, which the page's policy allows. */
const styledSpan = (element: HTMLElement): HTMLElement => {
  const setAttribute = element.setAttribute.bind(element)
  element.setAttribute = (name, value) => {
    if (name === 'style') element.style.cssText = value
    else setAttribute(name, value)
  }
  return element
}

/**
 * Opens a terminal in an element. The library makes its elements with the page's `document`: until the answer is
 * called, spans have no `style` attribute, and while it opens its style elements are replaced.
 */
const openWithin = (terminal: Terminal, host: HTMLElement, sheets: CSSStyleSheet[]): (() => void) => {
  const create = document.createElement.bind(document)
  let opening = true
  const made = (tag: string, options?: ElementCreationOptions): HTMLElement => {
    if (tag === 'style' && opening) return sheetElement(create('span'), sheets)
    return tag === 'span' ? styledSpan(create(tag)) : create(tag, options)
  }
  document.createElement = made as typeof document.createElement
  try {
    terminal.open(host)
  } finally {
    opening = false
  }
  return () => {
    if (document.createElement === made) Reflect.deleteProperty(document, 'createElement')
  }
}

/** Draws a terminal in an element of the page. */
export const openScreen = (host: HTMLElement, events: ScreenEvents): TerminalScreen => {
  const sheets: CSSStyleSheet[] = []
  const terminal = new Terminal({
    fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace',
    fontSize: 13,
    scrollback: 5_000,
    minimumContrastRatio: 4.5,
    theme: themeOf(host),
    allowProposedApi: false,
  })
  const fit = new FitAddon()
  terminal.loadAddon(fit)
  const restore = openWithin(terminal, host, sheets)
  terminal.attachCustomKeyEventHandler(event => {
    // Every other key goes to the program, Tab too.
    const leaves = event.ctrlKey && event.shiftKey && event.key.toLowerCase() === 'e'
    if (leaves && event.type === 'keydown') {
      event.preventDefault()
      events.left()
    }
    return !leaves
  })
  terminal.onData(events.typed)
  const size = () => ({ cols: bounded(terminal.cols, 20, 500), rows: bounded(terminal.rows, 5, 200) })
  const refit = () => {
    fit.fit()
    events.resized(size())
  }
  const watch = new ResizeObserver(refit)
  watch.observe(host)
  const scheme = matchMedia('(prefers-color-scheme: dark)')
  const recolour = () => {
    terminal.options.theme = themeOf(host)
  }
  scheme.addEventListener('change', recolour)
  fit.fit()
  return {
    size,
    write: text => terminal.write(text),
    reset: () => terminal.reset(),
    focus: () => terminal.focus(),
    close: () => {
      watch.disconnect()
      scheme.removeEventListener('change', recolour)
      terminal.dispose()
      restore()
      document.adoptedStyleSheets = document.adoptedStyleSheets.filter(sheet => !sheets.includes(sheet))
    },
  }
}

const bounded = (value: number, least: number, most: number): number => Math.max(least, Math.min(most, value))
