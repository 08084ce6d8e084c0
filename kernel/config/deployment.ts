import { readFileSync } from 'node:fs'
import typia, { type tags } from 'typia'
import type { GroupSettings, LimitSettings, PreviewSettings, PublicSettings } from '../../sdk/host.js'
import type { IdentityProvider } from '../../sdk/kernel.js'
import { WrongUse } from './start-error.js'

/** Settings of a deployment: the file that `--config` names. */
export interface Deployment extends GroupSettings {
  identity?: {
    /**
     * Who becomes the owner: the first person to sign in (`first`), or the first who also sends the code printed at
     * start.
     */
    claim?: 'first' | 'code'
    /** The only e-mail that may become the owner by signing in. */
    expectedOwner?: string & tags.Pattern<'^[^\\s@]+@[^\\s@]+$'>
    /** Identity providers whose tokens are exchanged for sessions. */
    providers?: IdentityProvider[]
    /** Whether `sandbox login` works. */
    local?: 'on' | 'off'
  }
  http?: {
    /** Host names of the daemon besides the loopback ones, each with its port unless that is the default. */
    hosts?: string[]
    /** Origins whose pages may call the daemon; one `*` stands for exactly one label of the host. */
    origins?: string[]
    /** Addresses of proxies whose `x-forwarded-for` and `x-forwarded-proto` are trusted. */
    trustedProxies?: string[]
    /** The address used in links, such as `https://sandbox.example.org`; its host is added to `hosts`. */
    publicUrl?: string
    /** Accept credentials over plain HTTP from other machines; only for a private network. */
    allowPlain?: boolean
  }
  /**
   * What is visible behind every wall besides the system's own folders: absolute paths, or `~/` for the home folder.
   */
  wall?: {
    /** Files and folders that can be read. */
    read?: WallPath[]
    /** Folders that can be written too. */
    write?: WallPath[]
    /** False: the daemon also starts where the machine can build no wall; default: it refuses. */
    required?: boolean
    /** Memory and process limits for the programs of one turn. */
    limits?: LimitSettings
  }
  /** Where servers of the workspace are shown. */
  previews?: PreviewSettings
  /** Public files and pages. */
  public?: PublicSettings
}

type WallPath = string & tags.Pattern<'^(/|~/).*$'>

const parseDeployment = typia.json.createValidateParse<Deployment>()

/** Reads a deployment's file. */
export const readDeployment = (file: string): Deployment => {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new WrongUse(`the configuration ${file} cannot be read: ${(error as NodeJS.ErrnoException).code}`)
  }
  let result: ReturnType<typeof parseDeployment>
  try {
    result = parseDeployment(text)
  } catch (error) {
    throw new WrongUse(`the configuration ${file} is not JSON: ${(error as Error).message}`)
  }
  if (result.success) {
    const ids = result.data.identity?.providers?.map(({ id }) => id) ?? []
    const twice = ids.find((id, at) => ids.indexOf(id) !== at)
    if (twice !== undefined)
      throw new WrongUse(`the configuration ${file}: two providers called ${twice}: give each an id of its own`)
    return result.data
  }
  const [first] = result.errors
  throw new WrongUse(`the configuration ${file}: ${first?.path.replace('$input.', '')}: expected ${first?.expected}`)
}
