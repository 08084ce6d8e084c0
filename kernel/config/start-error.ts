/** The daemon cannot start; the message is one sentence for standard error. */
export class StartError extends Error {}

/** A flag, a variable or the deployment's file has a value that does not fit: nothing was begun. */
export class WrongUse extends StartError {}
