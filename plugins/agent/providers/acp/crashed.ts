/** The program has failed for good; the message continues a sentence that begins with its name. */
export class Crashed extends Error {}
