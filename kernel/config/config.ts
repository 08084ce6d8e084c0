import { createHash } from 'node:crypto'
import { realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { parseArgs } from 'node:util'
import typia, { type tags } from 'typia'
import { stateFolder } from '../../sdk/node/files/state-folder.js'
import { readDeployment, type Deployment } from './deployment.js'
import { WrongUse } from './start-error.js'

/** The configuration of one daemon. */
export interface Config {
  readonly workspace: string
  readonly data: string
  readonly host: string
  readonly port: number
  readonly store: string
  readonly json: boolean
  /** Refuse to start where the machine can build no wall. */
  readonly needsWall: boolean
  readonly deployment: Deployment
  /** The real path of the file the deployment was read from. */
  readonly deploymentFile?: string
}

const isPort = typia.createIs<number & tags.Type<'uint32'> & tags.Maximum<65535>>()

/**
 * Reads the configuration: flags win over the environment, and that over defaults. Throws a WrongUse that names the
 * mistake.
 */
export const readConfig = (args: readonly string[], env: NodeJS.ProcessEnv): Config => {
  const flags = readFlags(args)
  const folder = resolve(flags.workspace ?? env.SANDBOX_WORKSPACE ?? '.')
  const workspace = realFolder(folder)
  const data = realPlace(resolve(flags.data ?? env.SANDBOX_DATA ?? defaultData(workspace, env)))
  assertNameable('workspace', workspace)
  assertNameable('data folder', data)
  if (data === workspace || data.startsWith(workspace + sep)) {
    throw new WrongUse(
      `the data folder ${data} is inside the workspace, where turns could read it: choose another with --data`,
    )
  }
  const file = flags.config ?? env.SANDBOX_CONFIG
  const deployment = file ? readDeployment(resolve(file)) : {}
  return {
    workspace,
    data,
    host: flags.host ?? env.SANDBOX_HOST ?? '127.0.0.1',
    port: portIn('--port', flags.port ?? env.SANDBOX_PORT ?? '8787'),
    store: flags.store ?? env.SANDBOX_STORE ?? `sqlite://${join(data, 'store.sqlite')}`,
    json: flags.json ?? false,
    needsWall: !(flags['no-wall'] ?? isOn(env.SANDBOX_NO_WALL)) && deployment.wall?.required !== false,
    deployment: withPreviewPort(
      withPublicUrl(deployment, flags['public-url'] ?? env.SANDBOX_PUBLIC_URL),
      flags['preview-port'] ?? env.SANDBOX_PREVIEW_PORT,
    ),
    ...(file && { deploymentFile: realpathSync(resolve(file)) }),
  }
}

const isOn = (variable: string | undefined): boolean => !['', '0', 'false', undefined].includes(variable)

const portIn = (flag: string, text: string): number => {
  const port = Number(text)
  if (!isPort(port) || !text.trim()) throw new WrongUse(`${flag} expects a number from 0 to 65535, found ${text}`)
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
    throw new WrongUse(`--public-url expects an address such as https://sandbox.example.org, found ${named}`)
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
      'no-wall': { type: 'boolean' },
    } as const
    return parseArgs({ args: [...args], options }).values
  } catch (error) {
    throw new WrongUse((error as Error).message)
  }
}

const CONTROL = /[\u0000-\u001f\u007f]/

/** Refuses a folder that files of git and of the system cannot name, which have a path on each line. */
export const assertNameable = (what: string, path: string): void => {
  if (CONTROL.test(path))
    throw new WrongUse(
      `the ${what} ${JSON.stringify(path)} has a line break or another control character in its path, which git cannot `
        + 'write into its files: choose another folder',
    )
}

/** The real path of a folder that may not exist yet. */
const realPlace = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return dirname(path) === path ? path : join(realPlace(dirname(path)), basename(path))
  }
}

const realFolder = (folder: string): string => {
  try {
    const real = realpathSync(folder)
    if (!statSync(real).isDirectory()) throw new WrongUse(`the workspace ${folder} is not a folder`)
    return real
  } catch (error) {
    if (error instanceof WrongUse) throw error
    throw new WrongUse(`the workspace ${folder} cannot be read: ${(error as NodeJS.ErrnoException).code ?? error}`)
  }
}
