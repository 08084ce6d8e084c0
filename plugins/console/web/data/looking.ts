/** A person who used no tab for this long does not look at the console. */
const IDLE_MS = 5 * 60_000
const TOLD_MS = 5_000
const ANSWER_MS = 500
const CHECK_MS = 30_000

const tabs = 'BroadcastChannel' in globalThis ? new BroadcastChannel('sandbox.looking') : undefined

let usedHere = Date.now()
let usedElsewhere = 0
let toldAt = 0

const isVisible = (): boolean => document.visibilityState === 'visible'

/** Whether nobody looks at the console in this browser. */
const isIdle = (): boolean => {
  const since = Date.now() - IDLE_MS
  return !(isVisible() && usedHere > since) && usedElsewhere <= since
}

/** Calls `say` whenever a person begins or stops to look at the tabs of this browser; returns how to ask. */
export const watchLooking = (say: (idle: boolean) => void): (() => boolean) => {
  let said = false
  const check = () => {
    const idle = isIdle()
    if (idle === said) return
    said = idle
    say(idle)
  }
  const used = () => {
    usedHere = Date.now()
    check()
    if (usedHere - toldAt < TOLD_MS) return
    toldAt = usedHere
    tabs?.postMessage('used')
  }
  const hidden = () => {
    usedElsewhere = 0
    tabs?.postMessage('who')
    // Timers of hidden tabs are late; an answer is not.
    setTimeout(check, ANSWER_MS)
  }
  tabs?.addEventListener('message', ({ data }) => {
    if (data === 'used') usedElsewhere = Date.now()
    if (data === 'who') {
      usedElsewhere = 0
      if (isVisible() && usedHere > Date.now() - IDLE_MS) tabs.postMessage('used')
      setTimeout(check, ANSWER_MS)
      return
    }
    check()
  })
  for (const kind of ['pointerdown', 'keydown', 'wheel', 'focus'])
    addEventListener(kind, used, { capture: true, passive: true })
  document.addEventListener('visibilitychange', () => (isVisible() ? used() : hidden()))
  setInterval(check, CHECK_MS)
  return isIdle
}
