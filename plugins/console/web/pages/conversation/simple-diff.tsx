import { useMemo } from 'preact/hooks'
import { lineDiff, type DiffLine } from '../../run/line-diff.js'
import { countText, visibleText } from '../../ui/format.js'

const AROUND = 3
const MOST = 400
const SIGNS = { same: ' ', added: '+', removed: '−' } as const

/** The changed lines with three around them. */
const hunksOf = (lines: readonly DiffLine[]): (DiffLine | undefined)[] => {
  const near = new Set<number>()
  for (const [at, { kind }] of lines.entries())
    if (kind !== 'same') for (let one = at - AROUND; one <= at + AROUND; one++) near.add(one)
  return lines.flatMap((line, at) => (near.has(at) ? [line] : near.has(at - 1) ? [undefined] : []))
}

/** A small comparison of two texts. */
export const SimpleDiff = ({ before, after }: { before: string; after: string }) => {
  const lines = useMemo(() => hunksOf(lineDiff(before, after)), [before, after])
  return (
    <pre class="code diff" tabIndex={0} dir="ltr">
      {lines.slice(0, MOST).map((line, at) =>
        line ? (
          <span key={at} class={`diff-line ${line.kind}`}>
            {SIGNS[line.kind]} {visibleText(line.text)}
            {'\n'}
          </span>
        ) : (
          <span key={at} class="diff-line quiet">
            …{'\n'}
          </span>
        ),
      )}
      {lines.length > MOST && <span class="quiet">{countText(lines.length - MOST)} more lines</span>}
    </pre>
  )
}
