import type { ComponentChildren } from 'preact'
import { useSignal } from '@preact/signals'
import { served } from '../../data/live.js'
import { visibleName } from '../format.js'
import { lazyView } from '../lazy.js'
import { Toggle } from '../toggle.js'
import { diffText, hunksOf, lineDiff } from '../../run/line-diff.js'
import type { ComparedSource } from './compared-documents.js'
import { DiffView, type HunkAction, type PickedLines } from './diff-view.js'
import { CopyButton } from '../copy.js'

const ComparedDocuments = lazyView(async () => (await import('./compared-documents.js')).ComparedDocuments)

/** Both sides of a file as several groups answer them. */
export interface TextSides {
  readonly before?: string
  readonly after?: string
  readonly binary?: boolean
  /** A side is too large: its text is left out, or cut. */
  readonly truncated?: boolean
}

interface ComparedTextsProps {
  readonly path: string
  readonly sides: TextSides | undefined
  readonly error: unknown
  /** Where the sides are, to compare documents as text. */
  readonly source: ComparedSource
  readonly hunks?: HunkAction | undefined
  readonly picked?: (lines: PickedLines) => void
  /** What can be done with the file. */
  readonly tools?: ComponentChildren
  /** Below the name of the file. */
  readonly children?: ComponentChildren
}

/** Documents that are text themselves: shown by line until a person asks for the document. */
const READABLE = /\.(?:ipynb|csv|tsv)$/i

/** One file of a comparison, with its name and what can be done with it. */
export const ComparedTexts = ({ path, sides, error, source, hunks, picked, tools, children }: ComparedTextsProps) => {
  const split = useSignal(false)
  const rendered = useSignal(false)
  const mayRender = served.value.has('diffs.rendered')
  const asDocument = mayRender && sides !== undefined && (rendered.value || sides.binary === true)
  const { before, after } = sides ?? {}
  return (
    <section class="file-pane" aria-label={visibleName(path)}>
      <div class="row file-head">
        <h2 class="mono">{visibleName(path)}</h2>
        <CopyButton text={path} what="the path" />
        <span class="grow" />
        {(before ?? '') !== (after ?? '') && (
          <CopyButton
            text={() => diffText(hunksOf(lineDiff(before ?? '', after ?? '')))}
            what="the diff"
            label="Copy"
          />
        )}
        {mayRender && READABLE.test(path) && <Toggle label="As a document" on={rendered} />}
        <Toggle label="Side by side" on={split} class="wide-only" />
        {tools}
      </div>
      {children}
      {error !== undefined && !sides ? (
        <p class="notice bad">{(error as Error).message}</p>
      ) : !sides ? (
        <div class="diff-host" aria-busy="true" />
      ) : asDocument ? (
        <ComparedDocuments source={source} split={split.value} />
      ) : sides.binary ? (
        <p class="empty quiet">A binary file: its content is not shown.</p>
      ) : sides.truncated && before === undefined && after === undefined ? (
        <p class="empty quiet">A side is larger than 512 KiB: the content is not shown.</p>
      ) : (
        <>
          {sides.truncated && <p class="notice warn">Only the first MiB of this file is shown.</p>}
          {(before ?? '') === (after ?? '') ? (
            <p class="empty quiet">
              {sides.truncated
                ? 'What is shown of both sides is the same: the change is further down.'
                : 'Both sides have the same text.'}
            </p>
          ) : (
            <DiffView
              path={path}
              before={before ?? ''}
              after={after ?? ''}
              split={split.value}
              {...(picked && { picked })}
              hunks={hunks}
            />
          )}
        </>
      )}
    </section>
  )
}
