/**
 * What a line that tells of an error may hold. Wide on purpose: a line that is kept for nothing costs a few tokens, a
 * lost error a wrong turn.
 */
const ANY_CASE = [
  ...['error', 'errno', '\\berr\\b', 'fail', 'fatal', 'panic', 'exception', 'traceback', 'abort', 'crash', 'critical'],
  ...['emerg', '\\balert', 'severe', 'denied', 'refus', 'forbid', 'unauthor', 'reject', 'cannot', "can[’']t"],
  ...["could ?n[o’']t", 'could not', 'unable', "does ?n[o’']t", 'does not', "did ?n[o’']t", 'did not', "won[’']t"],
  ...[
    'not (?:ok|found|exist|allowed|permitted|implemented|defined|recogni[sz]ed)',
    'no such',
    'nothing to be done for',
  ],
  ...['unexpected', 'invalid', 'illegal', 'malformed', 'missing', 'undefined', 'unresolved', 'unknown', 'undeclared'],
  ...['segmentation', 'core dump', 'killed', '\\boom\\b', 'out of memory', 'no space', 'time[d]?[- ]?out', 'deadlock'],
  ...['conflict', 'mismatch', 'corrupt', '\\bbroken', '\\bbad\\b', '\\bwrong', '\\blost\\b', 'unreachable', 'overflow'],
  ...[
    '\\bleak',
    'violat',
    'vulnerab',
    'assert',
    '\\bexpected\\b',
    'caused by',
    'exit(?:ed)?\\b.{0,20}\\b[1-9]',
    'signal',
  ],
  ...[
    '(?:http|status|code|response|fetch [a-z]+)\\W{0,4}[45]\\d\\d\\b',
    '\\b[45]\\d\\d [a-z]+ ?[a-z]*$',
    '!{2,}',
    '\\bwarning\\b',
    '[a-z]:\\d+:\\d+\\b',
  ],
]
const AS_WRITTEN = [
  ...[
    '\\bE[A-Z]{4,}',
    '\\bE\\d{3,}',
    '[✗✘✖❌⨯‼⚠]',
    '^\\s*at \\S',
    '^\\s*[>|]?\\s*\\^',
    '^\\s*[EFW]\\s',
    '\\*{3} \\S',
    '^\\s*-->',
  ],
  '^\\s*\\d+ \\|',
  // Failed tests among dots.
  '(?:^|[\\s.sxX])[EF]+[.sxX]{2,}|[.sxX]{2,}[EF]+(?:[.sxX\\s]|$)',
]
const TELLS = new RegExp(ANY_CASE.join('|'), 'i')
const SHOWS = new RegExp(AS_WRITTEN.join('|'))

/** Options of compilers that name what is an error. */
const OPTIONS = /\s-[WfD][\w=+-]+/g

/** A longer line is not looked at, and stays: no text that a program prints may hold the daemon up. */
export const MOST_LOOKED_AT = 1_000

/** Whether a line may tell of an error. Such a line is never left out. */
export const tellsOfError = (line: string): boolean => {
  if (line.length > MOST_LOOKED_AT) return true
  const said = line.includes(' -') ? line.replace(OPTIONS, '') : line
  return TELLS.test(said) || SHOWS.test(said)
}
