import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Handlers } from '../sdk/contract.js'
import type { Kernel, KernelInfo } from '../sdk/kernel.js'
import type { Live } from './streams/live.js'
import { packageVersion } from '../sdk/node/programs/package.js'
import { Refusal, refuse } from '../sdk/refusal.js'
import { admit } from './auth/admit.js'
import type { Boot } from './boot.js'
import type { FileStore } from './storage/files.js'
import type { LoadedPlugin } from './loader.js'

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

/** The kernel's own routes, by operation id. */
export const OWN_ROUTES: { readonly [id: string]: string } = {
  'open.health': 'GET /health',
  'open.document': 'GET /openapi.json',
  'open.reference': 'GET /reference',
}

/** Answers what this daemon is; what costs time is worked out on the first question and kept. */
export const describeDaemon = (
  root: string,
  identity: SandboxIdentity,
  boot: Boot,
  plugins: () => readonly LoadedPlugin[],
): (() => Promise<KernelInfo>) => {
  let fixed: Promise<Omit<KernelInfo, 'boot'>> | undefined
  return async () => {
    fixed ??= fixedPart(root, identity, plugins())
    return { ...(await fixed), boot: boot.progress() }
  }
}

const fixedPart = async (
  root: string,
  identity: SandboxIdentity,
  plugins: readonly LoadedPlugin[],
): Promise<Omit<KernelInfo, 'boot'>> => {
  const { shapesOf } = (await import(pathToFileURL(join(root, 'openapi', 'shapes.js')).href)) as {
    shapesOf(plugin: LoadedPlugin): { [id: string]: string }
  }
  const shapes = Object.assign({}, ...plugins.map(shapesOf)) as { [id: string]: string }
  const routes = [
    ...plugins.flatMap(({ manifest }) => Object.values(manifest.routes).map(({ id }) => id)),
    ...Object.keys(OWN_ROUTES),
  ]
  return { ...identity, version: packageVersion(root), build: await buildOf(root), routes: routes.sort(), shapes }
}

const buildOf = async (root: string): Promise<string> => {
  const folders = ['chunks', 'kernel', 'plugins', 'sdk'].map(async folder =>
    (await readdir(join(root, folder), { recursive: true }).catch(() => []))
      .filter(file => file.endsWith('.js'))
      .map(file => join(folder, file)),
  )
  const digest = createHash('sha256')
  for (const file of (await Promise.all(folders)).flat().sort())
    digest.update(file).update(readFileSync(join(root, file)))
  return digest.digest('hex').slice(0, 16)
}

type AccessCalls = Pick<Handlers<Kernel>, 'kernel.access.admits'>

/** Answers whether a caller may use a route of these groups. */
export const kernelAccessCalls = (plugins: () => readonly LoadedPlugin[]): AccessCalls => ({
  'kernel.access.admits': ({ call }, { caller }) => {
    const access = plugins()
      .map(({ manifest }) => manifest.routes[call])
      .find(found => found !== undefined)
    if (!access) return { admits: false, message: `nothing serves ${call} here` }
    if ('open' in access) return { admits: true }
    try {
      admit(caller, access)
      return { admits: true }
    } catch (error) {
      return { admits: false, message: Refusal.from(error).message }
    }
  },
})

/** The calls by which groups reach the stream. */
export const liveCalls = (live: Live): Pick<Handlers<Kernel>, `kernel.events.${'publish' | 'show'}`> => ({
  'kernel.events.publish': ({ domain, key, within }, { caller: { kind, actor } }) => {
    if (kind !== 'plugin') refuse('forbidden', `a group publishes as itself, found a caller of kind ${kind}`)
    live.bump(actor.slice('sandbox:'.length), domain, key, within)
    return { ok: true }
  },
  'kernel.events.show': ({ frames }) => {
    live.show(frames)
    return { ok: true }
  },
})
