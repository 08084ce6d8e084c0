import type { Terminal } from './verb.js'

type Env = Terminal['env']

/** Whether words are coloured: as FORCE_COLOR says, else never with NO_COLOR, else at a terminal that can. */
export const wantsColour = ({ FORCE_COLOR: forced, NO_COLOR: none, TERM }: Env, terminal: boolean): boolean => {
  if (forced) return forced !== '0' && forced !== 'false'
  return !none && terminal && TERM !== 'dumb'
}

/** How wide tables and help may be: as COLUMNS says, else as the terminal is; undefined: as wide as they are. */
export const widthOf = ({ COLUMNS }: Env, terminal: number | undefined): number | undefined => {
  const said = /^\d{1,5}$/.test(COLUMNS ?? '') ? Number(COLUMNS) : 0
  return said || terminal || undefined
}
