import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { CodePiece } from './code/colouring.js'
import { visibleText } from './format.js'
import { TextBlock } from './text-block.js'
import { ignored } from '../../../../sdk/ignored.js'

/** A growing code is coloured when it rests. */
const REST_MS = 150
const MOST = 64 * 1024

/** A block of code; its colours come with the grammar of its language, which is loaded then. */
export const CodeBlock = ({ text, language }: { text: string; language: string }) => {
  const coloured = useSignal<{ readonly text: string; readonly pieces: readonly CodePiece[] } | undefined>(undefined)
  useEffect(() => {
    if (!language || text.length > MOST) return undefined
    let gone = false
    const colour = async () => {
      const { colouredPieces } = await import('./code/colouring.js')
      const pieces = await colouredPieces(text, language)
      if (pieces && !gone) coloured.value = { text, pieces }
    }
    const timer = setTimeout(() => void colour().catch(ignored('without its grammar the code stays as it is')), REST_MS)
    return () => {
      gone = true
      clearTimeout(timer)
    }
  }, [text, language])
  const found = coloured.value
  return (
    <TextBlock text={text} what="the code">
      <code>
        {found?.text === text
          ? found.pieces.map(({ text: part, colour }, at) =>
              colour ? (
                <span key={at} class={colour}>
                  {visibleText(part)}
                </span>
              ) : (
                visibleText(part)
              ),
            )
          : visibleText(text)}
      </code>
    </TextBlock>
  )
}
