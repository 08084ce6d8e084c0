import { createHash } from 'node:crypto'
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { join, resolve, sep } from 'node:path'
import { parseArgs } from 'node:util'
import typia, { type tags } from 'typia'
import type { LimitSettings, ModelSettings, PreviewSettings } from '../sdk/host.js'
import type { IdentityProvider } from '../sdk/kernel.js'
import { stateFolder } from '../sdk/node/files/state-folder.js'

/** Settings of a deployment: the file that `--config` names. */
export interface Deployment {
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
    /** Memory and process limits for the programs of one turn. */
    limits?: LimitSettings
  }
  /** Where servers of the workspace are shown. */
  previews?: PreviewSettings
  /** Providers of models, and the free trial. */
  models?: ModelSettings
}

type WallPath = string & tags.Pattern<'^(/|~/).*$'>

/** The configuration of one daemon. */
export interface Config {
  readonly workspace: string
  readonly data: string
  readonly host: string
  readonly port: number
  readonly store: string
  readonly json: boolean
  readonly deployment: Deployment
  /** The real path of the file the deployment was read from. */
  readonly deploymentFile?: string
}

/** The daemon cannot start; the message is one sentence for standard error. */
export class StartError extends Error {}

const parseDeployment = typia.json.createValidateParse<Deployment>()
const isPort = typia.createIs<number & tags.Type<'uint32'> & tags.Maximum<65535>>()

/**
 * Reads the configuration: flags win over the environment, and that over defaults. Throws a StartError that names the
 * mistake.
 */
export const readConfig = (args: readonly string[], env: NodeJS.ProcessEnv): Config => {
  const flags = readFlags(args)
  const folder = resolve(flags.workspace ?? env.SANDBOX_WORKSPACE ?? '.')
  const workspace = realFolder(folder)
  const data = resolve(flags.data ?? env.SANDBOX_DATA ?? defaultData(workspace, env))
  if (data === workspace || data.startsWith(workspace + sep)) {
    throw new StartError(
      `the data folder ${data} is inside the workspace, where turns could read it: choose another with --data`,
    )
  }
  const file = flags.config ?? env.SANDBOX_CONFIG
  return {
    workspace,
    data,
    host: flags.host ?? env.SANDBOX_HOST ?? '127.0.0.1',
    port: portIn('--port', flags.port ?? env.SANDBOX_PORT ?? '8787'),
    store: flags.store ?? env.SANDBOX_STORE ?? `sqlite://${join(data, 'store.sqlite')}`,
    json: flags.json ?? false,
    deployment: withPreviewPort(
      withPublicUrl(file ? readDeployment(resolve(file)) : {}, flags['public-url'] ?? env.SANDBOX_PUBLIC_URL),
      flags['preview-port'] ?? env.SANDBOX_PREVIEW_PORT,
    ),
    ...(file && { deploymentFile: realpathSync(resolve(file)) }),
  }
}

const portIn = (flag: string, text: string): number => {
  const port = Number(text)
  if (!isPort(port) || !text.trim()) throw new StartError(`${flag} expects a number from 0 to 65535, found ${text}`)
  return port
}

const withPreviewPort = (deployment: Deployment, named: string | undefined): Deployment =>
  named === undefined
    ? deployment
    : { ...deployment, previews: { ...deployment.previews, port: portIn('--preview-port', named) } }

const withPublicUrl = ({ http, ...deployment }: Deployment, named = http?.publicUrl): Deployment => {
  if (named === undefined) return { ...deployment, ...(http && { http }) }
  const url = URL.parse(named)
  if (!url || !/^https?:$/.test(url.protocol) || `${url.origin}/` !== url.href)
    throw new StartError(`--public-url expects an address such as https://sandbox.example.org, found ${named}`)
  return { ...deployment, http: { ...http, publicUrl: url.origin, hosts: [...(http?.hosts ?? []), url.host] } }
}

const defaultData = (workspace: string, env: NodeJS.ProcessEnv): string =>
  join(stateFolder(env), createHash('sha256').update(workspace).digest('hex').slice(0, 16))

const readFlags = (args: readonly string[]) => {
  const text = { type: 'string' } as const
  try {
    const options = {
      workspace: text,
      data: text,
      host: text,
      port: text,
      'preview-port': text,
      store: text,
      config: text,
      'public-url': text,
      json: { type: 'boolean' },
    } as const
    return parseArgs({ args: [...args], options }).values
  } catch (error) {
    throw new StartError((error as Error).message)
  }
}

const realFolder = (folder: string): string => {
  try {
    const real = realpathSync(folder)
    if (!statSync(real).isDirectory()) throw new StartError(`the workspace ${folder} is not a folder`)
    return real
  } catch (error) {
    if (error instanceof StartError) throw error
    throw new StartError(`the workspace ${folder} cannot be read: ${(error as NodeJS.ErrnoException).code ?? error}`)
  }
}

const readDeployment = (file: string): Deployment => {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new StartError(`the configuration ${file} cannot be read: ${(error as NodeJS.ErrnoException).code}`)
  }
  let result: ReturnType<typeof parseDeployment>
  try {
    result = parseDeployment(text)
  } catch (error) {
    throw new StartError(`the configuration ${file} is not JSON: ${(error as Error).message}`)
  }
  if (result.success) {
    const ids = result.data.identity?.providers?.map(({ id }) => id) ?? []
    const twice = ids.find((id, at) => ids.indexOf(id) !== at)
    if (twice !== undefined)
      throw new StartError(`the configuration ${file}: two providers called ${twice}: give each an id of its own`)
    return result.data
  }
  const [first] = result.errors
  throw new StartError(`the configuration ${file}: ${first?.path.replace('$input.', '')}: expected ${first?.expected}`)
}
