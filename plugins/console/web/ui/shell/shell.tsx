import { useSignal } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { askDaemon } from '../../data/api.js'
import { attention, connection, updated, hello } from '../../data/live.js'
import { fragmentOf, place } from '../../data/route.js'
import { hideLimit, shownLimits } from '../../data/limits.js'
import { person } from '../../data/session/session.js'
import { PAGES, type ConsolePageEntry, type PageProps } from '../../pages/registry.js'
import { useCommands } from '../commands.js'
import { commandsOfExtensions } from '../extensions/commands-of-extensions.js'
import { Icon } from '../icons.js'
import { lazyView } from '../lazy.js'
import { useQuery } from '../query.js'
import { shellCommands } from './shell-commands.js'
import { ViewLinks } from '../extensions/view-links.js'
import { listedPages, pageIsVisible } from '../visible.js'
import { ignored } from '../../../../../sdk/ignored.js'

const loaded = new Map<string, FunctionComponent<PageProps>>()

const STATES = {
  connecting: 'Connecting …',
  reconnecting: 'The connection to the sandbox was lost. What you see may be out of date; it is tried again.',
  starting: 'The sandbox is starting …',
} as const

const Palette = lazyView(async () => (await import('./palette.js')).Palette)
const KeyHelp = lazyView(async () => (await import('./palette.js')).KeyHelp)

/** The number of items that wait for the signed-in person. */
const waitingNow = (): number => {
  const now = attention.value
  return now ? now.cards + now.land + now.needs + now.approvals : 0
}

const Nav = ({ current, openPalette }: { current: string; openPalette: () => void }) => {
  const waiting = waitingNow()
  return (
    <nav aria-label="Pages">
      <div class="brand">
        Sandbox
        <p class="small quiet">{person.value && `${person.value.name ?? person.value.email}`}</p>
      </div>
      <button class="nav-link nav-find" type="button" onClick={openPalette}>
        <Icon name="search" />
        Go to or do …
      </button>
      {listedPages().map(page => (
        <a
          key={page.name}
          class={`nav-link${page.wide ? ' wide-only' : ''}${page.narrow ? ' narrow-only' : ''}`}
          href={fragmentOf(page.name)}
          aria-current={
            current === page.name || (page.name === 'fleet' && current === 'c')
              ? 'page'
              : // On a phone "More" stands for the pages that only wide screens list.
                page.narrow && PAGES.some(({ name, wide }) => wide && name === current)
                ? 'true'
                : undefined
          }
        >
          <Icon name={page.icon} />
          {page.label}
          {page.name === 'inbox' && waiting > 0 && (
            <span class="count">
              {waiting}
              <span class="visually-hidden"> waiting for a person</span>
            </span>
          )}
        </a>
      ))}
      <ViewLinks at={place.value} />
    </nav>
  )
}

const Banners = () => {
  const state = connection.value
  const info = useQuery('info', ['info'], () => askDaemon('GET /info'))
  // A connection that is established quickly is not reported.
  const late = useSignal(false)
  useEffect(() => {
    const timer = setTimeout(() => {
      late.value = true
    }, 1_500)
    return () => clearTimeout(timer)
  }, [])
  const waiting = state === 'connected' || (state === 'connecting' && !late.value)
  return (
    <div role="status">
      {!waiting && <p class="banner">{STATES[state as keyof typeof STATES]}</p>}
      {info.data?.wall === 'none' && (
        <p class="banner">
          There is no wall: agents can read and change everything that the user who runs the sandbox can.
        </p>
      )}
      {updated.value && (
        <p class="banner">
          The sandbox was updated.
          <button class="button" type="button" onClick={() => location.reload()}>
            Reload
          </button>
        </p>
      )}
      {shownLimits.value.map(sentence => (
        <p key={sentence} class="banner">
          <span class="grow">{sentence}</span>
          <button class="button plainly" type="button" onClick={() => hideLimit(sentence)}>
            Hide
          </button>
        </p>
      ))}
    </div>
  )
}

const PageBody = ({ page, rest }: { page: ConsolePageEntry; rest: readonly string[] }) => {
  const shown = useSignal(0)
  const fault = useSignal('')
  useEffect(() => {
    if (loaded.has(page.name)) return
    page.load().then(
      View => {
        loaded.set(page.name, View)
        shown.value += 1
      },
      () => {
        fault.value = page.name
      },
    )
  }, [page.name])
  if (fault.value === page.name)
    return (
      <div class="page-body stack">
        <h1>{page.label}</h1>
        <p class="notice bad">This part of the page could not be loaded.</p>
        <div>
          <button class="button" type="button" onClick={() => location.reload()}>
            Reload
          </button>
        </div>
      </div>
    )
  const View = shown.value >= 0 ? loaded.get(page.name) : undefined
  return View ? <View rest={rest} /> : <div class="page-body" aria-busy="true" />
}

/** The page of a signed-in person: navigation, problems of the connection, and one of the pages. */
export const Shell = () => {
  const [name = PAGES[0]!.name, ...rest] = place.value
  const page = PAGES.find(one => one.name === name && pageIsVisible(one)) ?? PAGES.find(pageIsVisible) ?? PAGES[0]!
  const dialog = useSignal<'palette' | 'help' | undefined>(undefined)
  const box = useRef<HTMLDivElement>(null)
  const at = place.value.join('/')
  const before = useRef(at)
  const waiting = waitingNow()
  const open = (what: 'palette' | 'help') => {
    dialog.value = what
  }
  const close = () => {
    dialog.value = undefined
  }
  useCommands([...shellCommands(open), ...commandsOfExtensions()])
  useEffect(() => {
    // Keys that are typed while it is loaded would act on the page.
    void Palette.preload().catch(ignored('it is loaded when it is opened'))
  }, [])
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${page.label} – Sandbox`
  }, [waiting, page.label])
  useEffect(() => {
    // Where the focus went with the page before, it goes to the new one, so that keys and readers go on there.
    if (before.current !== at && (document.activeElement ?? document.body) === document.body) box.current?.focus()
    before.current = at
  }, [at])
  return (
    <div class={`shell${page.listed ? '' : ' deep'}`} data-ready={hello.value ? 'yes' : undefined}>
      <Nav current={page.name} openPalette={() => open('palette')} />
      <div class="page" ref={box} tabIndex={-1}>
        <Banners />
        <PageBody page={page} rest={page.name === name ? rest : []} />
      </div>
      {dialog.value === 'palette' && <Palette close={close} />}
      {dialog.value === 'help' && <KeyHelp close={close} />}
    </div>
  )
}
