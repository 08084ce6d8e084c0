const MOST_KEY = 180

/** The key of an action of a connection, in the characters that keys of actions have. */
export const connectionActionKey = (id: string, type: string): string =>
  `${actionProvider(id)}.${plain(type, /[^a-z0-9._-]/g)}`.slice(0, MOST_KEY)

/** The part of a key that names the connection. */
export const actionProvider = (id: string): string => plain(id, /[^a-z0-9_-]/g)

const plain = (text: string, other: RegExp): string => text.toLowerCase().replaceAll(other, '_')
