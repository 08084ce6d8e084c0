/** One line of a comparison: kept, added or removed. */
export interface PatchLine {
  readonly mark: ' ' | '+' | '-'
  readonly text: string
}

/** A region with more differing lines is shown as replaced, since the search takes quadratic time. */
const MOST_EDITS = 400

const linesOf = (text: string): string[] => {
  if (text === '') return []
  return (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n')
}

/** Compares two texts line by line. */
export const compare = (before: string, after: string): PatchLine[] => {
  const a = linesOf(before)
  const b = linesOf(after)
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const kept = (lines: string[]) => lines.map((text): PatchLine => ({ mark: ' ', text }))
  return [
    ...kept(a.slice(0, head)),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...kept(a.slice(a.length - tail)),
  ]
}

const replaced = (a: readonly string[], b: readonly string[]): PatchLine[] => [
  ...a.map((text): PatchLine => ({ mark: '-', text })),
  ...b.map((text): PatchLine => ({ mark: '+', text })),
]

/** The shortest edit script by Myers' greedy algorithm, traced back through the furthest points of each round. */
const middle = (a: readonly string[], b: readonly string[]): PatchLine[] => {
  const most = Math.min(a.length + b.length, MOST_EDITS)
  const rounds: Map<number, number>[] = []
  let furthest = new Map<number, number>([[1, 0]])
  for (let edits = 0; edits <= most; edits++) {
    const next = new Map<number, number>()
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      let x = step(furthest, diagonal, edits)
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x++
      next.set(diagonal, x)
      if (x >= a.length && x - diagonal >= b.length) return walked(a, b, [...rounds, furthest])
    }
    rounds.push(furthest)
    furthest = next
  }
  return replaced(a, b)
}

const step = (furthest: ReadonlyMap<number, number>, diagonal: number, edits: number): number => {
  const down = furthest.get(diagonal + 1) ?? -1
  const right = furthest.get(diagonal - 1) ?? -1
  return diagonal === -edits || (diagonal !== edits && right < down) ? down : right + 1
}

const walked = (a: readonly string[], b: readonly string[], rounds: readonly Map<number, number>[]): PatchLine[] => {
  const lines: PatchLine[] = []
  let x = a.length
  let y = b.length
  for (let edits = rounds.length - 1; edits >= 0; edits--) {
    const diagonal = x - y
    const from = rounds[edits]!
    const down =
      diagonal === -edits || (diagonal !== edits && (from.get(diagonal - 1) ?? -1) < (from.get(diagonal + 1) ?? -1))
    const before = down ? diagonal + 1 : diagonal - 1
    const beforeX = edits === 0 ? 0 : from.get(before)!
    const beforeY = edits === 0 ? 0 : beforeX - before
    while (x > beforeX && y > beforeY && a[x - 1] === b[y - 1]) {
      lines.push({ mark: ' ', text: a[--x]! })
      y--
    }
    if (edits === 0) break
    lines.push(down ? { mark: '+', text: b[--y]! } : { mark: '-', text: a[--x]! })
  }
  return lines.reverse()
}

/** Formats a comparison as unified hunks with `around` lines of context. */
export const hunks = (lines: readonly PatchLine[], around = 3): string[] => {
  const shown: string[] = []
  let before = 1
  let after = 1
  let at = 0
  while (at < lines.length) {
    const change = lines.findIndex((line, index) => index >= at && line.mark !== ' ')
    if (change < 0) break
    const start = Math.max(at, change - around)
    before += start - at
    after += start - at
    let end = change
    for (let quiet = 0, index = change; index < lines.length && quiet <= around * 2; index++) {
      quiet = lines[index]!.mark === ' ' ? quiet + 1 : 0
      if (quiet === 0) end = index
    }
    end = Math.min(lines.length, end + 1 + around)
    const hunk = lines.slice(start, end)
    const [removed, added] = [
      hunk.filter(line => line.mark !== '+').length,
      hunk.filter(line => line.mark !== '-').length,
    ]
    shown.push(
      `@@ -${removed ? before : before - 1},${removed} +${added ? after : after - 1},${added} @@`,
      ...hunk.map(line => line.mark + line.text),
    )
    before += removed
    after += added
    at = end
  }
  return shown
}
