import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ContractSchema } from '../sdk/contract.js'
import type { KernelInfo } from '../sdk/kernel.js'
import type { Boot } from './boot.js'
import type { FileStore } from './storage/files.js'
import type { LoadedPlugin } from './loader.js'

/** Who this sandbox is: minted at the first start on a data folder. */
export interface Identity {
  readonly sandboxId: string
  readonly workspaceId: string
}

const NAME = 'kernel/sandbox'

/** The sandbox's own ids, made on the first start and the same ever after. */
export const readIdentity = async (files: FileStore, mint: () => string): Promise<Identity> => {
  const known = await files.read<Identity>(NAME)
  if (known) return known
  const made: Identity = { sandboxId: mint(), workspaceId: mint() }
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
export const describeDaemon = (root: string, identity: Identity, boot: Boot, plugins: () => readonly LoadedPlugin[]): (() => Promise<KernelInfo>) => {
  let fixed: Promise<Omit<KernelInfo, 'boot'>> | undefined
  return async () => {
    fixed ??= fixedPart(root, identity, plugins())
    return { ...(await fixed), boot: boot.progress() }
  }
}

const fixedPart = async (root: string, identity: Identity, plugins: readonly LoadedPlugin[]): Promise<Omit<KernelInfo, 'boot'>> => {
  const shapes = Object.assign({}, ...plugins.map(shapesOf)) as { [id: string]: string }
  const routes = [...plugins.flatMap(({ manifest }) => Object.values(manifest.routes).map(({ id }) => id)), ...Object.keys(OWN_ROUTES)]
  return { ...identity, version: versionOf(root), build: await buildOf(root), routes: routes.sort(), shapes }
}

const shapesOf = ({ manifest, contract }: LoadedPlugin): { [id: string]: string } => {
  const schema = contract.schema()
  return Object.fromEntries(schema.functions
    .filter(({ name }) => manifest.routes[name])
    .map(call => [manifest.routes[call.name]!.id, hash(JSON.stringify(sorted(withRefs(call, schema))))]))
}

/** The same value however its keys and the members of its lists were met: the compiler orders a union as it comes upon it. */
const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, inner]) => [key, sorted(inner)]))
}

/** A call's schema together with every component it names, in the order they are met. */
const withRefs = (call: unknown, { components }: ContractSchema): unknown[] => {
  const met = new Map<string, unknown>()
  const visit = (value: unknown): void => {
    for (const [, name] of JSON.stringify(value).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      if (met.has(name!)) continue
      met.set(name!, components.schemas?.[name!])
      visit(met.get(name!) ?? {})
    }
  }
  visit(call)
  return [call, ...met]
}

const versionOf = (root: string): string =>
  (JSON.parse(readFileSync(join(root, '..', 'package.json'), 'utf8')) as { version: string }).version

const buildOf = async (root: string): Promise<string> => {
  const folders = ['kernel', 'plugins', 'sdk'].map(async folder =>
    (await readdir(join(root, folder), { recursive: true })).filter(file => file.endsWith('.js')).map(file => join(folder, file)))
  const digest = createHash('sha256')
  for (const file of (await Promise.all(folders)).flat().sort()) digest.update(file).update(readFileSync(join(root, file)))
  return digest.digest('hex').slice(0, 16)
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 12)
