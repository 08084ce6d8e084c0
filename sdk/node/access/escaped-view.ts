/** The escapes of HTML, JSON, JavaScript and URLs for one character. */
const ESCAPE = new RegExp(
  '&(?:#0{0,6}(\\d{1,7})|#x0{0,6}([\\da-f]{1,6})|([a-z]{2,8}\\d{0,2}));'
    + '|\\\\(?:u([\\da-f]{4})|x([\\da-f]{2}))|%([0-7][\\da-f])',
  'gi',
)
/** The end of a text that may be the beginning of one. */
const BEGUN = /(?:&(?:#x?[\da-f]{0,13}|[a-z]{0,8}\d{0,2})|\\(?:u[\da-f]{0,3}|x[\da-f]?)?|%[0-7]?)$/i
const LONGEST_BEGUN = 16
const MAY_HOLD = /[&\\%]/

/** The names that HTML has for the characters of ASCII beside letters and digits, each with its character. */
const OF_ASCII =
  'amp& lt< gt> quot" apos\' num# dollar$ percnt% lpar( rpar) ast* plus+ comma, period. sol/ colon: semi; equals= '
  + 'quest? commat@ lsqb[ lbrack[ bsol\\ rsqb] rbrack] Hat^ lowbar_ grave` lcub{ lbrace{ verbar| vert| rcub} '
  + 'rbrace} excl! AMP& LT< GT> QUOT"'
/** Those for the characters from 160 to 255, in order. */
const OF_LATIN =
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute '
  + 'micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig '
  + 'Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash '
  + 'Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute '
  + 'ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc '
  + 'uuml yacute thorn yuml'
const NAMED = new Map([
  ...OF_ASCII.split(' ').map(entry => [entry.slice(0, -1), entry.slice(-1)] as const),
  ...OF_LATIN.split(' ').map((name, at) => [name, String.fromCharCode(160 + at)] as const),
])

interface Escape {
  /** Where its character is in the view. */
  readonly at: number
  readonly width: number
  /** Where it ends in the text. */
  readonly end: number
}

/** A text with characters in place of their escapes. */
export interface EscapedView {
  readonly text: string
  /** The position in the text that a position in the view stands for. */
  readonly sourceOf: (at: number) => number
}

const characterOf = ([, decimal, hex, named, ...rest]: RegExpExecArray): string | undefined => {
  if (named !== undefined) return NAMED.get(named)
  const digits = hex ?? rest.find(each => each !== undefined)
  const code = decimal === undefined ? Number.parseInt(digits ?? '', 16) : Number(decimal)
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : undefined
}

/** The view of a text; undefined: there is no escape in it. */
export const escapedView = (text: string): EscapedView | undefined => {
  if (!MAY_HOLD.test(text)) return undefined
  const escapes: Escape[] = []
  let view = ''
  let from = 0
  ESCAPE.lastIndex = 0
  for (let found = ESCAPE.exec(text); found; found = ESCAPE.exec(text)) {
    const char = characterOf(found)
    if (char === undefined) continue
    view += text.slice(from, found.index)
    from = found.index + found[0].length
    escapes.push({ at: view.length, width: char.length, end: from })
    view += char
  }
  if (escapes.length === 0) return undefined
  const sourceOf = (at: number): number => {
    let [low, high] = [0, escapes.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (escapes[middle]!.at + escapes[middle]!.width <= at) low = middle + 1
      else high = middle
    }
    const before = escapes[low - 1]
    const within = escapes[low]
    // Half a character is the escape as a whole.
    const start = within && within.at < at ? within.at : at
    return before ? before.end + start - before.at - before.width : start
  }
  return { text: view + text.slice(from), sourceOf }
}

/** Where the beginning of an escape stands at the end of a text; undefined: none does. */
export const begunEscape = (text: string): number | undefined => {
  const tail = text.slice(-LONGEST_BEGUN)
  const found = MAY_HOLD.test(tail) ? BEGUN.exec(tail) : null
  return found ? text.length - tail.length + found.index : undefined
}
