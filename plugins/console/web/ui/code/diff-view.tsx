import { useEffect, useRef } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { faultSentence } from '../../data/api.js'

/** Lines of the later side that a person selected. */
export interface PickedLines {
  readonly from: number
  readonly to: number
  readonly text: string
}

/** What can be done with each changed part of a comparison. */
export interface HunkAction {
  readonly label: string
  /** Which side takes the part over from the other one. */
  readonly towards: 'before' | 'after'
  /** Called with the text of that side as it is then. */
  readonly take: (text: string) => void
}

/** The input of the comparison of two texts. */
export interface DiffSides {
  readonly path: string
  readonly before: string
  readonly after: string
  readonly split: boolean
  readonly picked?: (lines: PickedLines) => void
  /** Only where the sides are shown as one. */
  readonly hunks?: HunkAction | undefined
}

/** Both sides of a file; the editor that shows them is loaded with the first file. */
export const DiffView = (props: DiffSides) => {
  const box = useRef<HTMLDivElement>(null)
  const fault = useSignal('')
  const { path, before, after, split } = props
  const current = useRef(props)
  current.current = props
  const { hunks } = props
  useEffect(() => {
    let end: (() => void) | undefined
    let gone = false
    import('./diff-editor.js')
      .then(async ({ openDiff }) => {
        if (!gone)
          end = await openDiff(box.current!, {
            ...{ path, before, after, split },
            picked: lines => current.current.picked?.(lines),
            hunks: hunks && { ...hunks, take: text => current.current.hunks?.take(text) },
          })
        if (gone) end?.()
      })
      .catch(error => {
        fault.value = faultSentence(error)
      })
    return () => {
      gone = true
      end?.()
    }
  }, [path, before, after, split, hunks?.label])
  return (
    <>
      {fault.value && <p class="notice bad">{fault.value}</p>}
      <div class="diff-host" ref={box} />
    </>
  )
}
