import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { UiTheme } from '../../../../sdk/ui-host.js'
import { theme } from '../data/theme.js'

/** The colours that are shown: those that were chosen, else those of the system. */
export const useTheme = (): UiTheme => {
  const dark = useSignal(matchMedia('(prefers-color-scheme: dark)').matches)
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)')
    const look = () => {
      dark.value = query.matches
    }
    query.addEventListener('change', look)
    return () => query.removeEventListener('change', look)
  }, [])
  if (theme.value !== 'system') return theme.value
  return dark.value ? 'dark' : 'light'
}
