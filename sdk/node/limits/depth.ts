/** The most levels of a JSON value from outside: each further reader of it would need a level of the stack for each. */
export const MOST_LEVELS = 100

/** Whether a JSON value has more than this many levels of lists and objects. */
export const isDeeper = (value: unknown, levels = MOST_LEVELS): boolean =>
  typeof value === 'object'
  && value !== null
  && (levels === 0 || Object.values(value).some(each => isDeeper(each, levels - 1)))
