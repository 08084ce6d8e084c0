import type { ViewClientFrame } from '../../../../system/contract.js'
import { keyFrame } from '../../data/extensions/view-keys.js'

/** The position of a pointer, in pixels of the pictures. */
const pointOf = ({ clientX, clientY }: { clientX: number; clientY: number }, canvas: HTMLCanvasElement) => {
  const { left, top, width, height } = canvas.getBoundingClientRect()
  return {
    x: Math.round(((clientX - left) * canvas.width) / Math.max(1, width)),
    y: Math.round(((clientY - top) * canvas.height) / Math.max(1, height)),
  }
}

/** A finger that moved less than this, in pixels, tapped. */
const TAP = 10

/** The callbacks of `attachInput`. */
export interface InputEvents {
  readonly send: (frame: ViewClientFrame) => void
  /** The person leaves the picture with the keyboard. */
  readonly left: () => void
}

/** Forwards pointer, wheel, keys and paste of a picture; the returned function ends it. */
export const attachInput = (canvas: HTMLCanvasElement, { send, left }: InputEvents): (() => void) => {
  let finger: { x: number; y: number; moved: boolean } | undefined
  let move: ViewClientFrame | undefined
  const moveLater = (frame: ViewClientFrame): void => {
    if (!move) {
      requestAnimationFrame(() => {
        if (move) send(move)
        move = undefined
      })
    }
    move = frame
  }
  const pressed = (event: PointerEvent): void => {
    canvas.focus()
    event.preventDefault()
    if (event.pointerType === 'touch') {
      finger = { x: event.clientX, y: event.clientY, moved: false }
      return
    }
    canvas.setPointerCapture(event.pointerId)
    send({ type: 'mouse', action: 'down', ...pointOf(event, canvas), button: event.button })
  }
  const moved = (event: PointerEvent): void => {
    if (event.pointerType !== 'touch') return moveLater({ type: 'mouse', action: 'move', ...pointOf(event, canvas) })
    if (!finger) return
    const [deltaX, deltaY] = [finger.x - event.clientX, finger.y - event.clientY]
    if (!finger.moved && Math.hypot(deltaX, deltaY) < TAP) return
    finger = { x: event.clientX, y: event.clientY, moved: true }
    send({ type: 'mouse', action: 'wheel', ...pointOf(event, canvas), deltaX, deltaY })
  }
  const released = (event: PointerEvent): void => {
    const at = pointOf(event, canvas)
    if (event.pointerType !== 'touch') return send({ type: 'mouse', action: 'up', ...at, button: event.button })
    const tapped = finger && !finger.moved
    finger = undefined
    if (!tapped) return
    send({ type: 'mouse', action: 'move', ...at })
    send({ type: 'mouse', action: 'down', ...at, button: 0 })
    send({ type: 'mouse', action: 'up', ...at, button: 0 })
  }
  const wheel = (event: WheelEvent): void => {
    event.preventDefault()
    send({ type: 'mouse', action: 'wheel', ...pointOf(event, canvas), deltaX: event.deltaX, deltaY: event.deltaY })
  }
  const key = (event: KeyboardEvent): void => {
    const command = event.ctrlKey || event.metaKey
    if (command && event.shiftKey && event.key.toLowerCase() === 'e') {
      event.preventDefault()
      return left()
    }
    // The paste event that follows has the text.
    if (event.isComposing || (command && event.key.toLowerCase() === 'v')) return
    if (command && event.key.toLowerCase() === 'c') send({ type: 'selection' })
    const frame = keyFrame(event)
    if (!frame) return
    event.preventDefault()
    send(frame)
  }
  const paste = (event: ClipboardEvent): void => {
    const text = event.clipboardData?.getData('text/plain') ?? ''
    event.preventDefault()
    if (text) send({ type: 'text', text })
  }
  const over = new AbortController()
  const { signal } = over
  canvas.addEventListener('pointerdown', pressed, { signal })
  canvas.addEventListener('pointermove', moved, { signal })
  canvas.addEventListener('pointerup', released, { signal })
  canvas.addEventListener('pointercancel', () => (finger = undefined), { signal })
  canvas.addEventListener('contextmenu', event => event.preventDefault(), { signal })
  canvas.addEventListener('wheel', wheel, { signal, passive: false })
  canvas.addEventListener('keydown', key, { signal })
  canvas.addEventListener('paste', paste, { signal })
  return () => over.abort()
}
