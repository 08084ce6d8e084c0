import { useSignal } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { useEffect } from 'preact/hooks'

/** A component of another chunk, which is loaded when it is first shown, or before. */
export interface LazyView<P extends object> extends FunctionComponent<P> {
  /** Loads the component, so that it shows at once: a dialog then finds the focus where it was. */
  readonly preload: () => Promise<void>
}

/** Makes a component of another chunk. */
export const lazyView = <P extends object>(load: () => Promise<FunctionComponent<P>>): LazyView<P> => {
  let View: FunctionComponent<P> | undefined
  const preload = async (): Promise<void> => {
    View ??= await load()
  }
  const Lazy: FunctionComponent<P> = props => {
    const state = useSignal<'loading' | 'there' | 'failed'>(View ? 'there' : 'loading')
    useEffect(() => {
      if (View) return
      preload().then(
        () => {
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
  return Object.assign(Lazy, { preload })
}
