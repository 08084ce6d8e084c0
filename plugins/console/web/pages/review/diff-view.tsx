import { useEffect, useRef } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { faultSentence } from '../../data/api.js'

/** Lines of the agent's side that a person selected. */
export interface PickedLines {
  readonly from: number
  readonly to: number
  readonly text: string
}

/** The input of the comparison of two texts. */
export interface DiffSides {
  readonly path: string
  readonly before: string
  readonly after: string
  readonly split: boolean
  readonly picked: (lines: PickedLines) => void
}

/** Both sides of a file; the editor that shows them is loaded with the first file. */
export const DiffView = (props: DiffSides) => {
  const box = useRef<HTMLDivElement>(null)
  const fault = useSignal('')
  const { path, before, after, split, picked } = props
  useEffect(() => {
    let end: (() => void) | undefined
    let gone = false
    import('./diff-editor.js')
      .then(async ({ openDiff }) => {
        if (!gone) end = await openDiff(box.current!, { path, before, after, split, picked })
        if (gone) end?.()
      })
      .catch(error => {
        fault.value = faultSentence(error)
      })
    return () => {
      gone = true
      end?.()
    }
  }, [path, before, after, split])
  return (
    <>
      {fault.value && <p class="notice bad">{fault.value}</p>}
      <div class="diff-host" ref={box} />
    </>
  )
}
