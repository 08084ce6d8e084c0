import type { DiffPair, RenderedDiff, RenderedSide } from '../../../../diffs/contract.js'
import { askDaemon } from '../../data/api.js'
import { countText, visibleText } from '../format.js'
import { Loaded } from '../page.js'
import { Picture } from '../picture.js'
import { useQuery } from '../query.js'
import { DiffView } from './diff-view.js'

/** What changed in a file, and where its sides are. */
export interface ComparedSource extends DiffPair {
  readonly path: string
  readonly status: string
}

const PICTURE = /\.(?:png|jpe?g|gif|webp|bmp|ico|svg|avif)$/i
const SIDES = [
  ['before', 'Before', 'added'],
  ['after', 'After', 'deleted'],
] as const

/** The events after which a comparison may show something else. */
const domainsOf = ({ source, against }: DiffPair): readonly string[] =>
  source === 'working'
    ? ['refs', 'files']
    : source === 'agent'
      ? ['landings']
      : against === 'now'
        ? ['files', 'history']
        : []

const notesOf = (name: string, side: RenderedSide | undefined): string[] =>
  side === undefined
    ? []
    : [
        ...(side.failed === undefined ? [] : [`${name}: it cannot be read: ${side.failed}`]),
        ...side.notes.map(note => `${name}: ${note}`),
        ...(side.truncated ? [`${name}: only the beginning of the text is compared`] : []),
      ]

const Notes = ({ before, after, imagesChanged = 0, same }: RenderedDiff) => {
  const notes = [
    ...notesOf('Before', before),
    ...notesOf('After', after),
    ...(imagesChanged > 0 ? [`Changed pictures: ${countText(imagesChanged)}`] : []),
    ...(same ? ['Both sides have the same text'] : []),
  ]
  return (
    notes.length > 0 && (
      <ul class="plain-list document-notes small" aria-label="Notes about the document">
        {notes.map(note => (
          <li key={note} dir="auto">
            {visibleText(note)}.
          </li>
        ))}
      </ul>
    )
  )
}

const Rendered = ({ asked, split }: { asked: DiffPair & { path: string }; split: boolean }) => {
  const query = useQuery(`rendered ${JSON.stringify(asked)}`, domainsOf(asked), () =>
    askDaemon('GET /diff/rendered', asked),
  )
  return (
    <Loaded query={query}>
      {found => (
        <>
          <Notes {...found} />
          {!found.same && found.before?.failed === undefined && found.after?.failed === undefined && (
            // The text of a document is markdown, whatever its format.
            <DiffView
              path={`${asked.path}.md`}
              before={found.before?.markdown ?? ''}
              after={found.after?.markdown ?? ''}
              split={split}
            />
          )}
        </>
      )}
    </Loaded>
  )
}

/** A changed document as text, or both pictures. */
export const ComparedDocuments = ({ source, split }: { source: ComparedSource; split: boolean }) => {
  const { status, ...asked } = source
  const { path } = asked
  if (!PICTURE.test(path)) return <Rendered asked={asked} split={split} />
  return (
    <div class="row two-pictures">
      {SIDES.filter(([, , without]) => status !== without).map(([which, name]) => (
        <figure key={which}>
          <figcaption class="quiet small">{name}</figcaption>
          <Picture
            version={JSON.stringify(source)}
            name={`${name}: ${path}`}
            read={() => askDaemon('GET /diff/raw', { ...asked, which })}
          />
        </figure>
      ))}
    </div>
  )
}
