import type { Caller } from '../../../types.js'

/** Whether a caller may use a connection: a turn only those of its persona. */
export const usesConnection = ({ turn }: Pick<Caller, 'turn'>, id: string): boolean =>
  turn?.capabilities?.includes(id) ?? true
