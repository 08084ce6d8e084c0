import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { UiSurface } from '../../../../../sdk/ui-host.js'
import { askDaemon, faultSentence, fetchDaemon } from '../../data/api.js'
import { workspaceChange } from '../../data/live.js'
import { pageAsks } from '../../data/extensions/page-asks.js'
import { PageChannel } from '../../data/extensions/page-channel.js'
import { pagePlaceOf } from '../../data/place.js'
import { goTo } from '../../data/route.js'
import {
  chosenCommand,
  extensionName,
  reportUses,
  setViewBadge,
  type ShownExtension,
} from '../../data/extensions/shown-extensions.js'
import { useTheme } from '../shown-theme.js'
import { useQuery } from '../query.js'

/** The time in which the frame itself must load. */
const LOAD_MS = 10_000

interface ExtensionFrameProps {
  readonly extension: ShownExtension
  readonly surface: UiSurface
  readonly label: string
  /** It has the whole page: its height is not its own. */
  readonly fills?: boolean
}

/** The names of what became stale by changed paths. */
const staleNames = ({ manifest }: ShownExtension, paths: readonly string[], all: boolean): string[] => [
  ...new Set(
    (manifest.contributes?.files ?? [])
      .filter(
        ({ path }) => all || paths.some(changed => changed === path || changed.startsWith(path.replace(/\/?$/, '/'))),
      )
      .flatMap(({ invalidates }) => invalidates),
  ),
]

const mayBadge = ({ manifest }: ShownExtension, view: string): boolean =>
  [...(manifest.contributes?.views ?? []), ...(manifest.contributes?.sideViews ?? [])].some(
    each => each.id === view && each.badge === true,
  )

/** Whether a page may take a person there. */
const isPlace = (place: string): boolean => /^#\/[^\s]{0,1000}$/.test(place) && pagePlaceOf(place).length > 0

/** A page of an extension: its code in a frame without an origin, of which this console believes nothing. */
export const ExtensionFrame = (props: ExtensionFrameProps) => {
  const { extension, label } = props
  const fault = useSignal('')
  const round = useSignal(0)
  if (fault.value)
    return (
      <div class="page-body stack">
        <p class="notice bad" role="alert">
          {label} of {extensionName(extension)} was stopped. {fault.value}
        </p>
        <div>
          <button
            class="button"
            type="button"
            onClick={() => {
              fault.value = ''
              round.value += 1
            }}
          >
            Start it again
          </button>
        </div>
      </div>
    )
  return (
    <RunningFrame
      key={`${extension.id} ${extension.commit} ${round.value}`}
      {...props}
      stop={sentence => {
        fault.value = sentence
      }}
    />
  )
}

const RunningFrame = ({
  extension,
  surface,
  label,
  fills = false,
  stop,
}: ExtensionFrameProps & { stop: (sentence: string) => void }) => {
  const { id } = extension
  const box = useRef<HTMLIFrameElement>(null)
  const channel = useRef<PageChannel>(undefined)
  const active = useSignal(false)
  const theme = useTheme()
  const values = useQuery(`extension settings ${id}`, ['extensions'], () =>
    askDaemon('GET /extensions/{id}/settings', { id }),
  )
  const settings = values.data?.settings
  const ready = settings !== undefined || values.error !== undefined
  const now = useRef({ surface, theme, settings: settings ?? {} })
  now.current = { surface, theme, settings: settings ?? {} }
  useEffect(() => {
    const frame = box.current
    if (!frame || !ready) return
    let loads = 0
    const loading = new AbortController()
    const ended = (sentence: string) => {
      loading.abort()
      channel.current?.close()
      channel.current = undefined
      stop(sentence)
    }
    // A frame in the process of one that did not respond never loads.
    const late = setTimeout(() => ended('It did not respond for 10 s.'), LOAD_MS)
    const loaded = () => {
      clearTimeout(late)
      loads += 1
      if (loads > 1) return ended('It left its page.')
      void begin().catch(error => loading.signal.aborted || ended(faultSentence(error)))
    }
    const begin = async () => {
      const response = await fetchDaemon(`/extensions/${encodeURIComponent(id)}/bundle`, { signal: loading.signal })
      if (!response.ok) throw new Error(((await response.json()) as { message: string }).message)
      const code = await response.text()
      if (loading.signal.aborted) return
      const { port1, port2 } = new MessageChannel()
      channel.current = new PageChannel(
        port1,
        pageAsks(extension, surface.file?.path),
        {
          badge: count => mayBadge(extension, surface.view) && setViewBadge(id, surface.view, count),
          resize: height => {
            if (!fills) frame.style.height = `${height}px`
          },
          open: place => isPlace(place) && goTo(...pagePlaceOf(place)),
          active: () => {
            active.value = true
          },
          ended,
        },
        () => document.visibilityState === 'visible',
      )
      // The frame has no origin that could be named; what it is was decided by its address.
      frame.contentWindow!.postMessage({ code, start: { id, ...now.current } }, '*', [port2])
    }
    frame.addEventListener('load', loaded)
    frame.src = '/console/frame.html'
    return () => {
      clearTimeout(late)
      loading.abort()
      channel.current?.close()
      channel.current = undefined
      void reportUses()
    }
  }, [ready])
  useEffect(() => channel.current?.tell('theme', theme), [theme])
  useEffect(() => channel.current?.tell('settings', settings ?? {}), [JSON.stringify(settings)])
  useEffect(() => channel.current?.tell('surface', surface), [JSON.stringify({ ...surface, file: surface.file?.path })])
  useEffect(
    () =>
      workspaceChange.subscribe(change => {
        const stale = change ? staleNames(extension, change.paths, change.reset === true) : []
        if (stale.length > 0) channel.current?.tell('files', stale)
      }),
    [],
  )
  const chosen = chosenCommand.value
  useEffect(() => {
    if (!active.value || chosen?.id !== id) return
    channel.current?.tell('command', chosen.command)
    chosenCommand.value = undefined
  }, [active.value, chosen])
  return (
    <iframe
      ref={box}
      class={`extension-frame${fills ? ' fills' : ''}`}
      title={`${label}, a page of the extension ${extensionName(extension)}`}
      sandbox="allow-scripts"
      referrerpolicy="no-referrer"
      data-active={active.value ? 'yes' : undefined}
    />
  )
}
