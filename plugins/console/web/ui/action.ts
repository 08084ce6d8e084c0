import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { retryAfterOf, faultSentence } from '../data/api.js'

/** An action of a person: whether it is running, and why it failed. */
export interface ActionState {
  readonly busy: boolean
  readonly fault: string
  run(work: () => Promise<unknown>): Promise<boolean>
  clear(): void
}

/** Runs actions one at a time, and keeps the message of a failure for the component that started it. */
export const useAction = (): ActionState => {
  const busy = useSignal(false)
  const fault = useSignal('')
  const timer = useRef<ReturnType<typeof setInterval>>(undefined)
  const clear = () => {
    clearInterval(timer.current)
    fault.value = ''
  }
  useEffect(() => clear, [])
  return {
    busy: busy.value,
    fault: fault.value,
    clear,
    run: async work => {
      if (busy.value) return false
      busy.value = true
      clear()
      try {
        await work()
        return true
      } catch (error) {
        const sentence = faultSentence(error)
        let seconds = retryAfterOf(error) ?? 0
        const show = () => {
          fault.value = seconds > 0 ? `${sentence} Possible again in ${seconds} s.` : sentence
          if (seconds-- <= 0) clearInterval(timer.current)
        }
        show()
        if (seconds >= 0) timer.current = setInterval(show, 1000)
        return false
      } finally {
        busy.value = false
      }
    },
  }
}
