import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { askDaemon } from '../../data/api.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { sizeTextOf, visibleName, visibleText } from '../../ui/format.js'
import { Markdown } from '../../ui/markdown.js'
import { FaultLine, Loaded } from '../../ui/page.js'
import { Picture } from '../../ui/picture.js'
import { useQuery } from '../../ui/query.js'
import { useRead } from '../../ui/read.js'
import { reaches } from '../registry.js'
import { TextBlock } from '../../ui/text-block.js'

interface OtherFileProps {
  readonly path: string
  /** Changes with the file. */
  readonly version: number
}

/** A picture of the workspace. */
export const PictureView = ({ path, version }: OtherFileProps) => (
  <Picture version={`${version} ${path}`} name={path} read={() => askDaemon('GET /workspace/raw', { path })} />
)

/** A sound or a film of the workspace, read as it is played. */
export const MediaView = ({ path, film }: OtherFileProps & { film: boolean }) => {
  const broken = useSignal(false)
  const ticket = useQuery(`media ${path}`, [], () => askDaemon('POST /workspace/media-ticket', { path }))
  return (
    <Loaded query={ticket}>
      {({ ticket: one }) => {
        const shared = {
          src: `/workspace/media?${new URLSearchParams({ ticket: one })}`,
          controls: true,
          'aria-label': visibleName(path),
          onError: () => {
            broken.value = true
          },
        }
        return (
          <div class="picture-box">
            {film ? <video {...shared} /> : <audio {...shared} />}
            {broken.value && <p class="notice bad">This browser cannot play the file.</p>}
          </div>
        )
      }}
    </Loaded>
  )
}

/** A document as text. */
export const DocumentView = ({ path, version }: OtherFileProps) => {
  const action = useAction()
  const again = useSignal(0)
  const mayDerive = reaches(person.value?.role, 'collaborator')
  const query = useQuery(`derived ${path} ${version} ${again.value}`, ['index'], () =>
    askDaemon('GET /workspace/derived', { path }),
  )
  const derive = () =>
    void action.run(async () => {
      await askDaemon('POST /workspace/derive', { path })
      again.value += 1
    })
  const { data } = query
  const wanted = data !== undefined && !('content' in data) && data.derivable && data.state === 'idle'
  useEffect(() => {
    // Whoever may derive a text opens the document to read it.
    if (wanted && mayDerive) derive()
  }, [wanted, path, version])
  return (
    <div class="pane-body stack scrolls" tabIndex={0} role="region" aria-label="Document as text">
      <FaultLine fault={action.fault} />
      {action.busy && <p role="status">The text of the document is being read …</p>}
      <Loaded query={query}>
        {one =>
          'content' in one ? (
            <>
              {one.stale && (
                <p class="notice warn row">
                  The document changed since.
                  {mayDerive && (
                    <button class="button" type="button" disabled={action.busy} onClick={derive}>
                      Read it again
                    </button>
                  )}
                </p>
              )}
              {one.notes.map(note => (
                <p key={note} class="quiet small">
                  {visibleText(note)}
                </p>
              ))}
              {one.title && <h3 dir="auto">{visibleText(one.title)}</h3>}
              <Markdown text={one.content} />
              {one.truncated && <p class="notice">Only the first MiB of the text is kept.</p>}
            </>
          ) : (
            !action.busy && (
              <p class="quiet">
                {one.reason
                  ? `Its text cannot be read: ${visibleText(one.reason)}.`
                  : one.derivable
                    ? 'Its text was not read yet.'
                    : 'Its format is not known.'}{' '}
                {one.state === 'broken' && mayDerive && (
                  <button class="button" type="button" onClick={derive}>
                    Try again
                  </button>
                )}
              </p>
            )
          )
        }
      </Loaded>
    </div>
  )
}

/** A file that is not text: what an extension says that it says, or how large it is. */
export const BinaryView = ({ path, size, version }: OtherFileProps & { size: number }) => {
  const { data } = useQuery(`binary ${path} ${version}`, ['index', 'extensions'], () =>
    askDaemon('GET /workspace/derived', { path }),
  )
  if (data && ('content' in data || data.derivable)) return <DocumentView path={path} version={version} />
  return <p class="empty quiet">A binary file of {sizeTextOf(size)}: its content is not shown.</p>
}

const WINDOW = 256 * 1024

/** A text that is too large for the editor, part by part. */
export const LargeText = ({ path, size, version }: OtherFileProps & { size: number }) => {
  const offset = useSignal(0)
  const query = useRead(`${offset.value} ${version}`, () =>
    askDaemon('GET /workspace/file', { path, offset: offset.value, limit: WINDOW }),
  )
  const to = (next: number) => {
    offset.value = Math.max(0, Math.min(next, size - 1))
  }
  const end = offset.value + (query.data?.bytes ?? WINDOW)
  return (
    <>
      <div class="row file-state">
        <button class="button" type="button" disabled={offset.value === 0} onClick={() => to(0)}>
          Beginning
        </button>
        <button class="button" type="button" disabled={offset.value === 0} onClick={() => to(offset.value - WINDOW)}>
          Back
        </button>
        <button class="button" type="button" disabled={end >= size} onClick={() => to(end)}>
          On
        </button>
        <button class="button" type="button" disabled={end >= size} onClick={() => to(size - WINDOW)}>
          End
        </button>
        <span class="quiet small" role="status">
          From {sizeTextOf(offset.value)} of {sizeTextOf(size)}: too large to be written here.
        </span>
      </div>
      <Loaded query={query}>
        {({ content = '', lossy }) => (
          <>
            {lossy && <p class="notice">Parts of this file are not UTF-8 and show as �.</p>}
            <TextBlock class="code scrolls large-text" what="the file" text={content} />
          </>
        )}
      </Loaded>
    </>
  )
}
