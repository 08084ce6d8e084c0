import { computed, signal } from '@preact/signals-core'
import { Refusal } from '../../../../sdk/refusal.js'
import type { AttentionEvent, HelloEvent, PresenceUser, SystemEvent } from '../../../system/contract.js'
import type { WorkspaceChangedEvent } from '../../../workspace/contract.js'
import { askDaemon, sessionEnds } from './api.js'
import { filesAnew, filesChanged, filesMissed } from './files/file-changes.js'
import { dropQueries, refetch } from './queries.js'
import { watchLooking } from './looking.js'
import { fleetAfter, NO_FLEET, type FleetState } from './roster.js'
import { person, renewSession, signIn } from './session/session.js'
import { ignored } from '../../../../sdk/ignored.js'

/** The state of the page's connection to the daemon. */
export type ConnectionState = 'connecting' | 'connected' | 'reconnecting' | 'starting'

export const connection = signal<ConnectionState>('connecting')
export const fleet = signal<FleetState>(NO_FLEET)
export const attention = signal<AttentionEvent | undefined>(undefined)
export const present = signal<readonly PresenceUser[]>([])
export const hello = signal<HelloEvent | undefined>(undefined)
/** The daemon runs other code than when the page was loaded. */
export const updated = signal(false)
/** The last change of files in the shared tree. */
export const workspaceChange = signal<WorkspaceChangedEvent | undefined>(undefined)
/** The time of the last event: without a connection nothing that is shown is newer, but for what was read since. */
export const newsAt = signal(0)
/** Operation ids of the calls that the daemon serves. */
export const served = computed(() => new Set(hello.value?.routes ?? []))

const FIRST = 1_000
const MOST = 15_000
/** Before what failed is said again. */
const AGAIN = 2_000
/** A clock that jumps this far was asleep with its machine; tabs in the background count once a minute. */
const SLEPT = 90_000
/** The daemon sends something every 5 s: a stream that is silent for longer is dead without an end. */
const SILENT = 15_000
const RENEW = 6 * 60 * 60_000
const clientId = crypto.getRandomValues(new Uint32Array(4)).join('-')

/** Subjects of events of their own, which no version counts. */
const UNCOUNTED: ReadonlySet<string> = new Set(['files', 'refs', 'repos'])

type TabMessage =
  | { readonly kind: 'event'; readonly event: SystemEvent; readonly cursor: string }
  | { readonly kind: 'state'; readonly state: ConnectionState }
  | { readonly kind: 'joined' }

/** The time of the last event, or of the request for events. */
let heardAt = 0

/** What the person reaches changed: everything that was read counts no more. */
let reachChanged = false

const greet = (event: HelloEvent): void => {
  const before = hello.value
  hello.value = event
  person.value = { ...person.value, email: event.me.actor, ...event.me }
  connection.value = event.boot.ready ? 'connected' : 'starting'
  if (!before) return
  if (before.build !== event.build) updated.value = true
  if (before.workspaceId !== event.workspaceId) {
    fleet.value = NO_FLEET
    return dropQueries()
  }
  if (reachChanged) {
    reachChanged = false
    filesAnew()
    return refetch('all')
  }
  if (event.resumed) return
  filesMissed()
  refetch(UNCOUNTED)
  if (before.epoch !== event.epoch) {
    // Revisions restart; the board itself follows.
    fleet.value = { ...fleet.value, rev: NO_FLEET.rev }
    return refetch('all')
  }
  const changed = Object.entries(event.versions).filter(([domain, version]) => before.versions[domain] !== version)
  refetch(new Set(changed.map(([domain]) => domain)))
}

/** Applies one event of the sandbox; ignores unknown kinds. */
export const heard = (event: SystemEvent): void => {
  heardAt = Date.now()
  newsAt.value = heardAt
  if (connection.peek() !== 'starting') connection.value = 'connected'
  switch (event.kind) {
    case 'hello':
      return greet(event)
    case 'resync':
      reachChanged ||= event.reason === 'access'
      return
    case 'boot':
      connection.value = event.ready ? 'connected' : 'starting'
      return
    case 'agents':
    case 'agent':
      fleet.value = fleetAfter(fleet.value, event)
      return
    case 'attention':
      attention.value = event
      return
    case 'presence':
      present.value = event.users
      return
    case 'workspaceChanged':
      filesChanged(event)
      if (event.conversationId !== undefined) return
      workspaceChange.value = event
      if (event.paths.length > 0 || event.reset) refetch(new Set(['files']))
      return
    case 'refsChanged':
      return refetch(new Set(['refs']))
    case 'reposChanged':
      return refetch(new Set(['repos', 'refs']))
    case 'runtimeChanged':
      if (hello.value) hello.value = { ...hello.value, versions: { ...hello.value.versions, ...event.versions } }
      return refetch(new Set(event.domains))
    default:
  }
}

const tabs = 'BroadcastChannel' in globalThis ? new BroadcastChannel('sandbox.events') : undefined

const tell = (message: TabMessage): void => tabs?.postMessage(message)

const stateIs = (state: ConnectionState): void => {
  connection.value = state
  tell({ kind: 'state', state })
}

/** The id of the newest event that every tab has: the next reading tab resumes there. */
let cursor = ''

/** Ends the stream that is read here, which begins anew at once. */
let cut: (() => void) | undefined

/** Whether the stream of this tab is the one that says whether the person looks at the console. */
let leading = false

let idleNow = (): boolean => false

/** Says it again where that fails, until something else is so: the next change may come in hours. */
const sayIdle = (idle: boolean): void => {
  if (!leading) return
  void askDaemon('POST /system/presence', { clientId, idle }).catch(() =>
    setTimeout(() => idleNow() === idle && sayIdle(idle), AGAIN),
  )
}

/** Wakes the wait before the next attempt. */
let wake: (() => void) | undefined

const pause = (ms: number): Promise<void> =>
  new Promise(resolve => {
    const timer = setTimeout(resolve, ms)
    wake = () => {
      clearTimeout(timer)
      resolve()
    }
  })

/** Snapshots for tabs that open later, as at the beginning of a stream. */
const snapshots = (): SystemEvent[] => [
  ...(hello.value ? [hello.value] : []),
  { kind: 'agents', agents: [...fleet.value.cards.values()], rev: Math.max(0, fleet.value.rev) },
  ...(attention.value ? [attention.value] : []),
  { kind: 'presence', users: [...present.value] },
]

const lead = async (signal: AbortSignal): Promise<void> => {
  const answer = ({ data }: MessageEvent<TabMessage>) => {
    if (data.kind === 'joined' && hello.value) for (const event of snapshots()) tell({ kind: 'event', event, cursor })
  }
  tabs?.addEventListener('message', answer)
  let delay = FIRST
  while (!signal.aborted) {
    let again = false
    const attempt = new AbortController()
    const stop = () => attempt.abort()
    heardAt = Date.now()
    signal.addEventListener('abort', stop)
    cut = () => {
      again = true
      stop()
    }
    try {
      let id = ''
      const input = { clientId, roster: 'delta', ...(cursor && { after: cursor }) } as const
      const events = await askDaemon('GET /events', input, attempt.signal, next => {
        id = next
      })
      for await (const event of events) {
        delay = FIRST
        heard(event)
        if (event.kind === 'hello') {
          leading = true
          // A new stream begins as one that somebody looks at.
          if (idleNow()) sayIdle(true)
        }
        cursor = id || cursor
        // Snapshots follow a resync, so that they lack no event after an older position.
        if (event.kind === 'resync') cursor = ''
        tell({ kind: 'event', event, cursor })
        again = event.kind === 'resync' && event.reason === 'access'
        if (again) break
      }
    } catch (error) {
      if (signal.aborted) break
      if (error instanceof Refusal && error.reason === 'unauthenticated') sessionEnds.value += 1
    } finally {
      signal.removeEventListener('abort', stop)
      cut = undefined
      leading = false
    }
    if (signal.aborted) break
    // What a person may see changed: nothing is lost, and what they may no longer see must go at once.
    if (again) continue
    stateIs('reconnecting')
    await pause(delay * (1 + Math.random() / 4))
    delay = Math.min(delay * 2, MOST)
  }
  tabs?.removeEventListener('message', answer)
}

/** Reads the events of the sandbox in one tab, which passes them on to the others. */
const follow = async (signal: AbortSignal): Promise<void> => {
  if (!navigator.locks || !tabs) return lead(signal)
  tell({ kind: 'joined' })
  const listen = ({ data }: MessageEvent<TabMessage>) => {
    if (data.kind === 'event') {
      heard(data.event)
      ;({ cursor } = data)
    }
    if (data.kind === 'state') connection.value = data.state
  }
  tabs.addEventListener('message', listen)
  await navigator.locks
    .request('sandbox.events', { signal }, () => {
      tabs.removeEventListener('message', listen)
      return lead(signal)
    })
    .catch(ignored('the next tab leads'))
  tabs.removeEventListener('message', listen)
}

/** Follows the sandbox while a person is signed in. */
export const watchEvents = (): void => {
  let following: AbortController | undefined
  signIn.subscribe(({ kind }) => {
    if (kind === 'in' && !following) {
      following = new AbortController()
      void follow(following.signal)
    }
    if (kind !== 'in' && following) {
      following.abort()
      following = undefined
      hello.value = undefined
      fleet.value = NO_FLEET
      cursor = ''
      connection.value = 'connecting'
      dropQueries()
    }
  })
  idleNow = watchLooking(sayIdle)
  const retry = () => wake?.()
  addEventListener('online', retry)
  addEventListener('offline', () => {
    connection.value = 'reconnecting'
    // An event that is on its way must not say otherwise; a daemon on this machine answers at once.
    cut?.()
  })
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && retry())
  let tickedAt = Date.now()
  setInterval(() => {
    const now = Date.now()
    const slept = now - tickedAt > SLEPT
    tickedAt = now
    if (cut && (slept || now - heardAt > SILENT)) {
      stateIs('reconnecting')
      cut()
    }
    if (slept) retry()
  }, 2_000)
  let renewedAt = Date.now()
  setInterval(() => {
    if (signIn.value.kind !== 'in' || Date.now() - renewedAt < RENEW) return
    renewedAt = Date.now()
    void renewSession().catch(ignored('a session that ended is signed in anew'))
  }, 60_000)
}
