import { createContext } from 'preact'

/** The address within the console that a relative link of a text stands for; by default such links lead nowhere. */
export const LinkPlaces = createContext<(href: string) => string | undefined>(() => undefined)
