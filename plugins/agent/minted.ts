import { randomUUID } from 'node:crypto'

/** A new id: a letter for its kind, then what nobody can guess. */
export const minted = (letter: string): string => `${letter}-${randomUUID().replaceAll('-', '').slice(0, 20)}`
