import type { FileStore } from './files.js'

/** The ids of this sandbox, minted at the first start on a data folder. */
export interface SandboxIdentity {
  readonly sandboxId: string
  readonly workspaceId: string
}

const NAME = 'kernel/sandbox'

/** Reads the ids of the sandbox; mints and stores them on the first start. */
export const readIdentity = async (files: FileStore, mint: () => string): Promise<SandboxIdentity> => {
  const known = await files.read<SandboxIdentity>(NAME)
  if (known) return known
  const made: SandboxIdentity = { sandboxId: mint(), workspaceId: mint() }
  await files.write(NAME, made)
  return made
}
