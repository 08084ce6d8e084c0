/** The manifest lacks the entry that would allow an operation. */
export class Denied extends Error {
  readonly entry: string

  constructor(entry: string, message = `not allowed: the manifest has no entry ${entry}`) {
    super(message)
    this.entry = entry
  }
}

/** Refuses an operation for want of an entry. */
export const deny = (entry: string, message?: string): never => {
  throw new Denied(entry, message)
}
