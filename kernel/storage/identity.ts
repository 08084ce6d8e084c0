import type { FileStore } from './files.js'

/** Who this sandbox is: minted at the first start on a data folder. */
export interface SandboxIdentity {
  readonly sandboxId: string
  readonly workspaceId: string
}

const NAME = 'kernel/sandbox'

/** The sandbox's own ids, made on the first start and the same ever after. */
export const readIdentity = async (files: FileStore, mint: () => string): Promise<SandboxIdentity> => {
  const known = await files.read<SandboxIdentity>(NAME)
  if (known) return known
  const made: SandboxIdentity = { sandboxId: mint(), workspaceId: mint() }
  await files.write(NAME, made)
  return made
}
