import { createHash } from 'node:crypto'

/** The name of a part's text: equal texts at one path are sent once. */
export const partKey = (path: string, body: string): string =>
  createHash('sha256').update(`${path}\n${body}`).digest('base64url').slice(0, 22)
