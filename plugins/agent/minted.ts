import { randomUUID } from 'node:crypto'

/** A new id: a letter for its kind, then 80 random bits. */
export const minted = (letter: string): string => `${letter}-${randomUUID().replaceAll('-', '').slice(0, 20)}`
