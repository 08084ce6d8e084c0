const MOST_KEPT = 64 * 1024
const PIECE = 2048

/** The text without the line ends behind it, as a shell gives a command's output. */
export const chomp = (text: string): string => {
  let end = text.length
  while (end > 0 && (text[end - 1] === '\n' || text[end - 1] === '\r')) end--
  return text.slice(0, end)
}

/** As much of a text as a script keeps. */
export const kept = (text: string): string => (text.length > MOST_KEPT ? text.slice(0, MOST_KEPT).toWellFormed() : text)

/** Words with the blanks that follow them; one without a blank in it is cut where a frame would grow too large. */
export function* wordPieces(text: string): Generator<string> {
  for (const [word] of text.matchAll(/\S+\s*|\s+/g)) {
    for (let at = 0; at < word.length;) {
      let end = Math.min(at + PIECE, word.length)
      if (end < word.length && /[\uD800-\uDBFF]/.test(word[end - 1]!)) end--
      yield word.slice(at, end)
      at = end
    }
  }
}

/** The outcome of a call without the note by which a command's result tells its exit. */
export const exitOf = <O extends { readonly ok: boolean; readonly text: string; readonly exit?: number }>({
  ok,
  text,
  exit,
}: O): { ok: boolean; text: string; exit?: number } => {
  const note = ok ? undefined : /\n?\[exit (\d{1,3})\]$/.exec(text.slice(-16))
  if (!note) return { ok, text, ...(exit !== undefined && { exit }) }
  return { ok, text: text.slice(0, -note[0].length), exit: Number(note[1]) }
}
