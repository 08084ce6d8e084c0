import { signal } from '@preact/signals-core'

const KEY = 'sandbox.theme'

export type ThemeChoice = 'system' | 'light' | 'dark'

export const theme = signal<ThemeChoice>('system')

const kept = (): ThemeChoice => {
  try {
    const value = localStorage.getItem(KEY)
    return value === 'light' || value === 'dark' ? value : 'system'
  } catch {
    return 'system'
  }
}

/** Chooses the theme in this browser. */
export const chooseTheme = (choice: ThemeChoice): void => {
  theme.value = choice
  try {
    localStorage.setItem(KEY, choice)
  } catch {
    // It is kept for this tab alone.
  }
}

/** Shows the chosen theme. */
export const watchTheme = (): void => {
  theme.value = kept()
  theme.subscribe(choice => {
    if (choice === 'system') delete document.documentElement.dataset.theme
    else document.documentElement.dataset.theme = choice
  })
}
