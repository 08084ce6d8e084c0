import { signal } from '@preact/signals-core'
import { attention, served } from './live.js'
import { findPush, forgetDevice, pushed, registerDevice } from './push.js'
import { fragmentOf } from './route.js'
import { ignored } from '../../../../sdk/ignored.js'

const KEY = 'sandbox.notifications'

/** Whether this browser shows a notification when something waits: `none` where it has none, `denied` if it refused. */
export const notifications = signal<'none' | 'denied' | 'off' | 'on'>('none')

const kept = (): boolean => {
  try {
    return localStorage.getItem(KEY) === 'on'
  } catch {
    return false
  }
}

const known = (): typeof notifications.value => {
  if (!globalThis.isSecureContext || !('Notification' in globalThis)) return 'none'
  if (Notification.permission === 'denied') return 'denied'
  return Notification.permission === 'granted' && kept() ? 'on' : 'off'
}

/** Turns notifications on or off in this browser, which may ask the person. */
export const chooseNotifications = async (on: boolean): Promise<void> => {
  await choose(on)
  if (pushed.value === 'none' || !served.value.has('push.subscribe')) return
  if (!on) return forgetDevice()
  if (notifications.value === 'on') await registerDevice()
}

const choose = async (on: boolean): Promise<void> => {
  try {
    if (on) localStorage.setItem(KEY, 'on')
    else localStorage.removeItem(KEY)
  } catch {
    // It is kept for this tab alone.
  }
  const permission = on ? await Notification.requestPermission() : 'default'
  notifications.value = on ? (permission === 'granted' ? 'on' : 'denied') : 'off'
}

const notify = (waiting: number): void => {
  try {
    const text = waiting === 1 ? 'One thing waits for you.' : `${waiting} things wait for you.`
    // Tabs notify of the same thing: the tag keeps one notification of them.
    const shown = new Notification('Sandbox', { body: text, tag: 'sandbox.waiting' })
    shown.onclick = () => {
      focus()
      location.hash = fragmentOf('inbox')
      shown.close()
    }
  } catch {
    // Phones only let service workers notify.
    notifications.value = 'none'
  }
}

/** Notifies of what begins to wait while nobody sees this tab. */
export const watchNotifications = (): void => {
  notifications.value = known()
  // Whether it is for this person is known once they have signed in.
  let found = false
  served.subscribe(now => {
    if (found || !now.has('push.config')) return
    found = true
    void findPush().catch(ignored('the page works without notifications'))
  })
  let before: number | undefined
  attention.subscribe(now => {
    const waiting = now && now.cards + now.land
    const grew = waiting !== undefined && before !== undefined && waiting > before
    before = waiting
    if (grew && notifications.peek() === 'on' && pushed.peek() !== 'on' && document.visibilityState === 'hidden')
      notify(waiting)
  })
}
