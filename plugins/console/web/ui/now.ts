import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

/** The time, which is read anew each second while the component is shown. */
export const useNow = (): number => {
  const now = useSignal(Date.now())
  useEffect(() => {
    const timer = setInterval(() => {
      now.value = Date.now()
    }, 1_000)
    return () => clearInterval(timer)
  }, [])
  return now.value
}
