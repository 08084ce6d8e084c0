import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { UiFile, UiSurface } from '../../../../../sdk/ui-host.js'
import { askDaemon, faultSentence } from '../../data/api.js'
import { fileBytes } from '../../data/extensions/page-asks.js'
import { extensionName, shownExtensions, type ShownExtension } from '../../data/extensions/shown-extensions.js'
import { ExtensionFrame } from '../../ui/extensions/extension-frame.js'
import { sizeTextOf, visibleName } from '../../ui/format.js'
import { Bones, PageFrame } from '../../ui/page.js'
import { SideViews } from '../../ui/extensions/side-views.js'
import type { PageProps } from '../registry.js'

/** A page of an extension: a view by its id, or a file in one of its viewers (`file/<viewer>/<path>`). */
export const ExtensionViewPage = ({ rest }: PageProps) => {
  const [id = '', view = '', ...more] = rest
  const extension = shownExtensions.value.find(each => each.id === id)
  if (!extension)
    return (
      <PageFrame title={visibleName(id)}>
        <p class="quiet">No extension of this name shows pages now. It may be switched off, or wait for approval.</p>
      </PageFrame>
    )
  const name = visibleName(extensionName(extension))
  if (view === 'file') {
    const [viewer = '', ...path] = more
    return (
      <PageFrame title={`${visibleName(path.at(-1) ?? '')} – ${name}`} fills>
        <FileInViewer key={more.join('/')} extension={extension} viewer={viewer} path={path.join('/')} />
        <SideViews beside="file" surface={{ path: path.join('/') }} />
      </PageFrame>
    )
  }
  const found = extension.manifest.contributes?.views?.find(each => each.id === view)
  const label = visibleName(found?.label ?? name)
  const surface: UiSurface = { view: found ? view : '', ...(more.length > 0 && { repo: more.join('/') }) }
  return (
    <PageFrame title={found ? `${label} – ${name}` : name} fills>
      <ExtensionFrame key={view} extension={extension} surface={surface} label={label} fills />
    </PageFrame>
  )
}

const MOST_TEXT = 4 * 1024 * 1024
const MOST_BYTES = 32 * 1024 * 1024

const FileInViewer = ({ extension, viewer, path }: { extension: ShownExtension; viewer: string; path: string }) => {
  const found = extension.manifest.contributes?.viewers?.find(({ id }) => id === viewer)
  const file = useSignal<UiFile | undefined>(undefined)
  const fault = useSignal(found ? '' : 'The extension has no such viewer.')
  useEffect(() => {
    if (!found) return
    const reading = new AbortController()
    void fileFor(found.fetch, path, reading.signal).then(
      read => {
        file.value = read
      },
      error => {
        if (!reading.signal.aborted) fault.value = faultSentence(error)
      },
    )
    return () => reading.abort()
  }, [])
  if (fault.value) return <p class="notice bad">{fault.value}</p>
  if (!file.value) return <Bones />
  return <ExtensionFrame extension={extension} surface={{ view: viewer, path, file: file.value }} label={path} fills />
}

/** A file as a viewer gets it: text, all bytes, or its size alone, where the viewer reads the parts it needs. */
const fileFor = async (fetch: 'text' | 'blob' | 'url', path: string, signal: AbortSignal): Promise<UiFile> => {
  const { size } = await askDaemon('GET /workspace/file', { path, limit: 1 }, signal)
  if (size === undefined) throw new Error('there is no such file')
  if (fetch === 'url') return { path, size }
  const most = fetch === 'text' ? MOST_TEXT : MOST_BYTES
  if (size > most)
    throw new Error(`the viewer takes files of at most ${sizeTextOf(most)}; this one has ${sizeTextOf(size)}`)
  const bytes = size === 0 ? new Uint8Array() : await fileBytes(path, signal, { range: `bytes=0-${size - 1}` })
  return fetch === 'blob' ? { path, size, bytes } : { path, size, text: new TextDecoder().decode(bytes) }
}
