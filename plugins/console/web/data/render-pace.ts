/** A render that takes longer delays the next one. */
const COSTLY = 8
const REST = 50

/** The time of a page, and its frames. */
export interface RenderClock {
  now(): number
  /** Calls with the next frame of the screen. */
  frame(then: () => void): void
  /** Calls after this number of milliseconds; after 0 of them the frame that is being made is drawn. */
  after(ms: number, then: () => void): void
}

/**
 * Renders once per frame of the screen, however often it is called; after a costly render the page rests.
 *
 * @returns The function that asks for a render.
 */
export const pacedRender = (render: () => void, { now, frame, after }: RenderClock): (() => void) => {
  let busy = false
  let again = false
  let restsUntil = 0
  const draw = () => {
    again = false
    const began = now()
    render()
    after(0, () => {
      const ended = now()
      if (ended - began > COSTLY) restsUntil = ended + REST
      busy = false
      if (again) ask()
    })
  }
  const ask = () => {
    again = busy
    if (busy) return
    busy = true
    const rest = restsUntil - now()
    if (rest > 0) after(rest, () => frame(draw))
    else frame(draw)
  }
  return ask
}
