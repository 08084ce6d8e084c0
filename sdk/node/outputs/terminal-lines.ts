/** Escape sequences of terminals: colours, cursor moves, titles, links. */
const ESCAPES = new RegExp(
  [
    ...[String.raw`\x1b\[[0-?]*[ -/]*[@-~]`, String.raw`\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)`],
    ...[String.raw`\x1b[PX^_][^\x1b\n]*\x1b\\`, String.raw`\x1b[ -/]*[0-~]`, String.raw`\x9b[0-?]*[ -/]*[@-~]`],
  ].join('|'),
  'g',
)
/** Other characters that a terminal does not show. */
const UNSHOWN = /[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]/g

/** A text without what a terminal acts on in place of showing it. */
export const withoutEscapes = (text: string): string =>
  /[\x00-\x07\x0e-\x1f\x7f\x9b]/.test(text) ? text.replace(ESCAPES, '').replace(UNSHOWN, '') : text

const BAR = /[=#█▓▒░▉▊▋▌▍▎▏━─╸╺■□▰▱●○⣿*.>-]{6,}/
const PERCENT = /\b\d{1,3}(?:\.\d+)?\s?%/
const SPINNER = /^\s*[⠀-⣿◐◓◑◒◴◷◶◵⣾⣽⣻⢿⡿⣟⣯⣷]\s*\S?/
const COUNTER = /^\s*(?:\[?\s*\d+\s*\/\s*\d+\s*\]?|\d{1,3}(?:\.\d+)?\s?%)\s*$/
const DOTS = /^[\s.]*\d+K[\s.]+\d{1,3}%/

/** Whether a line shows only how far something has come. */
export const isProgress = (line: string): boolean =>
  COUNTER.test(line) || SPINNER.test(line) || DOTS.test(line) || (PERCENT.test(line) && BAR.test(line))

/** What a line that was drawn over shows in the end, and what it said in between that `keeps` asks for. */
export const drawnOver = (line: string, keeps: (part: string) => boolean): string[] => {
  const plain = line.includes('\b') ? line.replace(/[^\b]\x08|^\x08+/g, '') : line
  if (!plain.includes('\r')) return [plain]
  const parts = plain.split('\r').filter(part => part.trim() !== '')
  const last = parts.pop()
  if (last === undefined) return ['']
  return [...new Set([...parts.filter(keeps), last])]
}
