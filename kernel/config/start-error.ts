/** The daemon cannot start; the message is one sentence for standard error. */
export class StartError extends Error {}
