/** One line of a comparison. */
export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed'
  readonly text: string
}

/** With more changed lines two texts are shown one after the other. */
const MOST = 2_000

const linesOfText = (text: string): string[] => {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines
}

/** The shortest edit script between two lists of lines (Myers 1986), or all removed and all added if it is long. */
const middleOf = (before: readonly string[], after: readonly string[]): DiffLine[] => {
  const [n, m] = [before.length, after.length]
  const most = Math.min(n + m, MOST)
  let reach = new Map<number, number>([[1, 0]])
  const trace: Map<number, number>[] = []
  for (let d = 0; d <= most; d++) {
    trace.push(new Map(reach))
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1))
      let x = down ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1
      let y = x - k
      while (x < n && y < m && before[x] === after[y]) {
        x += 1
        y += 1
      }
      reach.set(k, x)
      if (x >= n && y >= m) return walkBack(before, after, trace)
    }
    reach = new Map(reach)
  }
  return [
    ...before.map(text => ({ kind: 'removed', text }) as const),
    ...after.map(text => ({ kind: 'added', text }) as const),
  ]
}

const walkBack = (
  before: readonly string[],
  after: readonly string[],
  trace: readonly ReadonlyMap<number, number>[],
): DiffLine[] => {
  const lines: DiffLine[] = []
  let [x, y] = [before.length, after.length]
  for (let d = trace.length - 1; d >= 0; d--) {
    const reach = trace[d]!
    const k = x - y
    const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1))
    const from = down ? k + 1 : k - 1
    const px = d === 0 ? 0 : (reach.get(from) ?? 0)
    const py = d === 0 ? 0 : px - from
    while (x > px && y > py) {
      lines.push({ kind: 'same', text: before[x - 1]! })
      x -= 1
      y -= 1
    }
    if (d === 0) break
    if (down) lines.push({ kind: 'added', text: after[y - 1]! })
    else lines.push({ kind: 'removed', text: before[x - 1]! })
    x = px
    y = py
  }
  return lines.reverse()
}

/** The lines of two texts, in order, as kept, removed and added. */
export const lineDiff = (before: string, after: string): DiffLine[] => {
  const [a, b] = [linesOfText(before), linesOfText(after)]
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1
  const same = (lines: readonly string[]) => lines.map(text => ({ kind: 'same', text }) as const)
  return [
    ...same(a.slice(0, head)),
    ...middleOf(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...same(a.slice(a.length - tail)),
  ]
}

const AROUND = 3
const SIGNS = { same: ' ', added: '+', removed: '-' } as const

/** The changed lines with three around them; a gap is `undefined`. */
export const hunksOf = (lines: readonly DiffLine[]): (DiffLine | undefined)[] => {
  const near = new Set<number>()
  for (const [at, { kind }] of lines.entries())
    if (kind !== 'same') for (let one = at - AROUND; one <= at + AROUND; one++) near.add(one)
  return lines.flatMap((line, at) => (near.has(at) ? [line] : near.has(at - 1) ? [undefined] : []))
}

/** The lines of a comparison as programs write them. */
export const diffText = (lines: readonly (DiffLine | undefined)[]): string =>
  lines.map(line => (line ? SIGNS[line.kind] + line.text : '@@')).join('\n')
