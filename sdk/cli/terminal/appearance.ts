import type { Terminal } from '../verb.js'

type Env = Terminal['env']

/** Whether output is coloured: FORCE_COLOR decides, then NO_COLOR; default: if it goes to a terminal with colours. */
export const wantsColour = ({ FORCE_COLOR: forced, NO_COLOR: none, TERM }: Env, terminal: boolean): boolean => {
  if (forced) return forced !== '0' && forced !== 'false'
  return !none && terminal && TERM !== 'dumb'
}

/** The width of tables and help: COLUMNS, else the width of the terminal; undefined: unlimited. */
export const widthOf = ({ COLUMNS }: Env, terminal: number | undefined): number | undefined => {
  const said = /^\d{1,5}$/.test(COLUMNS ?? '') ? Number(COLUMNS) : 0
  return said || terminal || undefined
}
