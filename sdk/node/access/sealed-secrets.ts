/** The field with the seed of one-time codes. */
const SEED = 'otp'
/** Kinds whose secrets are worth money. */
const MONEY: ReadonlySet<string> = new Set(['wallet'])

/** Whether a secret field of a connection enters no text, program or extension: its own group alone uses the value. */
export const isSealed = (kind: string, field: string): boolean => field === SEED || MONEY.has(kind)
