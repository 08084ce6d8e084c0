import type { Identity } from '../programs/git.js'

/** The author of the sandbox's commits, and of its moves of refs. */
export const SANDBOX: Identity = { name: 'Sandbox agent', email: 'agent@sandbox.local' }
