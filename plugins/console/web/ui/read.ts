import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { refetchedAll, type QueryState } from '../data/queries.js'

/** Reads something that is too large to be kept for later; what was read before stays until the new answer is there. */
export const useRead = <T>(key: string, reader: () => Promise<T>): QueryState<T> => {
  const state = useSignal<QueryState<T>>({ stale: true })
  useEffect(() => {
    let gone = false
    reader().then(
      data => {
        if (!gone) state.value = { data, at: Date.now(), stale: false }
      },
      error => {
        if (!gone) state.value = { ...state.value, error, stale: true }
      },
    )
    return () => {
      gone = true
    }
  }, [key, refetchedAll.value])
  return state.value
}
