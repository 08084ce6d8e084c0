import { useSignal } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { useEffect } from 'preact/hooks'

/** A component of another chunk, which is loaded when it is first shown. */
export const lazyView = <P extends object>(load: () => Promise<FunctionComponent<P>>): FunctionComponent<P> => {
  let View: FunctionComponent<P> | undefined
  return props => {
    const state = useSignal<'loading' | 'there' | 'failed'>(View ? 'there' : 'loading')
    useEffect(() => {
      if (View) return
      load().then(
        found => {
          View = found
          state.value = 'there'
        },
        () => {
          state.value = 'failed'
        },
      )
    }, [])
    if (state.value === 'failed') return <p class="notice bad">This part of the page could not be loaded. Reload it.</p>
    return View ? <View {...props} /> : <div class="page-body" aria-busy="true" />
  }
}
