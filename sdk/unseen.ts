/** Characters that control a terminal or a line, or have no glyph (Unicode: Cc, Default_Ignorable_Code_Point). */
const UNSEEN = String.raw`[\p{Cc}\p{DI}\u2028\u2029\ufff9-\ufffb]`

/** The selectors that choose a form of the character before them. */
export const SELECTORS = String.raw`\ufe00-\ufe0f\u{e0100}-\u{e01ef}`

/**
 * Finds characters that a reader does not see, or that turn the direction of a line.
 *
 * @param but Those that are meant, as in brackets of a regular expression: `\t\n`.
 */
export const unseenBut = (but: string): RegExp => new RegExp(`${UNSEEN}(?<![${but}])`, 'gu')

/** Characters as JSON escapes them, one `\uXXXX` for each code unit. */
export const escapedUnits = (text: string): string =>
  text.replace(/[^]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
