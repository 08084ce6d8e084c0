/** The program has failed for good; the message continues a sentence that begins with its name. */
export class Crashed extends Error {}

/** The program showed no sign of life at its start; another start of it would do the same. */
export class Silent extends Crashed {}

/** The program was ended because of another conversation that it served. */
export class Displaced extends Crashed {}

/** The program cannot serve this conversation beside others; it needs a process for each. */
export class CannotShare extends Error {}
