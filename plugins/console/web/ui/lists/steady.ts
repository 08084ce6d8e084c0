import type { RefObject } from 'preact'
import { useEffect } from 'preact/hooks'

/** Keeps presses in a list, whose parts move by themselves, from what has just moved below the pointer. */
export const useSteadyPresses = (box: RefObject<HTMLElement | null>): void => {
  useEffect(() => {
    let isShown = true
    let end = () => {}
    void import('./steady-presses.js')
      .then(({ steadyPresses }) => {
        if (isShown && box.current) end = steadyPresses(box.current)
      })
      // Without it presses act on what they hit.
      .catch(() => undefined)
    return () => {
      isShown = false
      end()
    }
  }, [])
}
