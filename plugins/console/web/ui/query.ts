import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { QueryState } from '../data/queries.js'
import { watchQuery } from '../data/queries.js'

/** An answer of the daemon that stays current while the component is shown. */
export const useQuery = <T>(
  key: string,
  domains: readonly string[],
  reader: () => Promise<T>,
): QueryState<T> & { readonly key: string } => {
  const shown = useSignal<QueryState<T> & { readonly key: string }>({ stale: true, key })
  useEffect(() => {
    const { state, stop } = watchQuery(key, domains, reader)
    const unsubscribe = state.subscribe(value => {
      shown.value = { ...value, key }
    })
    return () => {
      unsubscribe()
      stop()
    }
  }, [key])
  return shown.value
}

/** The last answer of a query whose key changes: the one before stays while the next is read, until that fails. */
export const useLastAnswer = <T>({ data, error }: QueryState<T>): T | undefined => {
  const last = useRef<T>(undefined)
  if (data !== undefined || error !== undefined) last.current = data
  return last.current
}
