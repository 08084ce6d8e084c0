import type { ComponentChildren } from 'preact'
import { useSignal } from '@preact/signals'
import { visibleName } from '../format.js'
import { DiffView, type HunkAction } from './diff-view.js'

/** Both sides of a file as several groups answer them. */
export interface TextSides {
  readonly before?: string
  readonly after?: string
  readonly binary?: boolean
  readonly truncated?: boolean
}

interface ComparedTextsProps {
  readonly path: string
  readonly sides: TextSides | undefined
  readonly error: unknown
  readonly hunks?: HunkAction | undefined
  /** What can be done with the file. */
  readonly tools?: ComponentChildren
}

/** One file of a comparison, with its name and what can be done with it. */
export const ComparedTexts = ({ path, sides, error, hunks, tools }: ComparedTextsProps) => {
  const split = useSignal(false)
  return (
    <section class="file-pane" aria-label={visibleName(path)}>
      <div class="row file-head">
        <h2 class="mono grow">{visibleName(path)}</h2>
        <button
          class="button wide-only"
          type="button"
          aria-pressed={split.value}
          onClick={() => {
            split.value = !split.value
          }}
        >
          Side by side
        </button>
        {tools}
      </div>
      {error !== undefined && !sides ? (
        <p class="notice bad">{(error as Error).message}</p>
      ) : !sides ? (
        <div class="diff-host" aria-busy="true" />
      ) : sides.binary ? (
        <p class="empty quiet">A binary file: its content is not shown.</p>
      ) : sides.truncated ? (
        <p class="empty quiet">A side is larger than 512 KiB: the content is not shown.</p>
      ) : (sides.before ?? '') === (sides.after ?? '') ? (
        <p class="empty quiet">Both sides have the same text.</p>
      ) : (
        <DiffView path={path} before={sides.before ?? ''} after={sides.after ?? ''} split={split.value} hunks={hunks} />
      )}
    </section>
  )
}
