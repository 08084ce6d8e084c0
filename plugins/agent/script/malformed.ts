/** A command that does not parse; the message says what was expected and found. */
export class Malformed extends Error {}
