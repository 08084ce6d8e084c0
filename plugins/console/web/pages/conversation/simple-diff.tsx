import { useMemo } from 'preact/hooks'
import { diffText, hunksOf, lineDiff } from '../../run/line-diff.js'
import { countText, visibleText } from '../../ui/format.js'
import { TextBlock } from '../../ui/text-block.js'

const MOST = 400
const SIGNS = { same: ' ', added: '+', removed: '−' } as const

/** A small comparison of two texts. */
export const SimpleDiff = ({ before, after }: { before: string; after: string }) => {
  const lines = useMemo(() => hunksOf(lineDiff(before, after)), [before, after])
  return (
    <TextBlock class="code diff" what="the diff" text="" copies={() => diffText(lines)}>
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
    </TextBlock>
  )
}
