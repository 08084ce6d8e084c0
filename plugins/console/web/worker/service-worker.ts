/** What the sandbox sends to this browser. */
interface Pushed {
  readonly title: string
  readonly body: string
  readonly url: string
  readonly tag: string
  readonly requireInteraction?: boolean
}

interface Tab {
  readonly url: string
  focus(): Promise<unknown>
  postMessage(message: unknown): void
}

interface Waiting extends Event {
  waitUntil(work: Promise<unknown>): void
}

interface PushedEvent extends Waiting {
  readonly data: { json(): Pushed } | null
}

interface ClickedEvent extends Waiting {
  readonly notification: Notification
}

/** The parts of a service worker's scope that are used here; the types of pages have none of them. */
interface WorkerScope {
  readonly location: Location
  readonly registration: ServiceWorkerRegistration
  readonly clients: {
    matchAll(options: { type: 'window'; includeUncontrolled: boolean }): Promise<readonly Tab[]>
    openWindow(url: string): Promise<unknown>
  }
  addEventListener(kind: 'push', listener: (event: PushedEvent) => void): void
  addEventListener(kind: 'notificationclick', listener: (event: ClickedEvent) => void): void
}

const scope = self as unknown as WorkerScope

scope.addEventListener('push', event => {
  const pushed = event.data?.json()
  if (!pushed) return
  const { title, body, tag, url, requireInteraction = false } = pushed
  event.waitUntil(scope.registration.showNotification(title, { body, tag, requireInteraction, data: { url } }))
})

/** Shows a place of the console in a tab that is open, else in a new one. */
const show = async (address: string): Promise<unknown> => {
  const url = new URL(address, scope.location.origin)
  // A message decides where a click leads, so it never leaves the sandbox.
  if (url.origin !== scope.location.origin) return undefined
  const all = await scope.clients.matchAll({ type: 'window', includeUncontrolled: true })
  const tab = all.find(one => new URL(one.url).pathname === '/')
  if (!tab) return scope.clients.openWindow(url.href)
  tab.postMessage({ kind: 'sandbox.show', search: url.search })
  return tab.focus()
}

scope.addEventListener('notificationclick', event => {
  event.notification.close()
  const { url } = event.notification.data as { url: string }
  event.waitUntil(show(url))
})
