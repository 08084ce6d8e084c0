import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Contract } from '../../sdk/contract.js'
import type { KernelInfo } from '../../sdk/kernel.js'
import { packageVersion } from '../../sdk/node/programs/package.js'
import type { SandboxIdentity } from '../storage/identity.js'
import type { Boot } from '../boot.js'
import type { Group } from '../group.js'
import type { PluginManifest } from '../manifest.js'

/** The kernel's own routes, by operation id. */
export const OWN_ROUTES: { readonly [id: string]: string } = {
  'open.health': 'GET /health',
  'open.document': 'GET /openapi.json',
  'open.reference': 'GET /reference',
}

/** A group's manifest with its contract. */
export interface DescribedGroup {
  readonly manifest: PluginManifest
  readonly contract: Contract
}

/** Loads the contracts of groups without starting them. */
export const describedGroups = (groups: readonly Group[]): Promise<DescribedGroup[]> =>
  Promise.all(groups.map(async group => ({ manifest: group.manifest, contract: await group.contract() })))

/** Describes this daemon; computes the expensive parts on the first call and caches them. */
export const describeDaemon = (
  root: string,
  identity: SandboxIdentity,
  boot: Boot,
  groups: () => readonly Group[],
): (() => Promise<KernelInfo>) => {
  let fixed: Promise<Omit<KernelInfo, 'boot'>> | undefined
  return async () => {
    fixed ??= fixedPart(root, identity, groups())
    return { ...(await fixed), boot: boot.progress() }
  }
}

const fixedPart = async (
  root: string,
  identity: SandboxIdentity,
  groups: readonly Group[],
): Promise<Omit<KernelInfo, 'boot'>> => {
  const { shapesOf } = (await import(pathToFileURL(join(root, 'openapi', 'shapes.js')).href)) as {
    shapesOf(group: DescribedGroup): { [id: string]: string }
  }
  const shapes = Object.assign({}, ...(await describedGroups(groups)).map(shapesOf)) as { [id: string]: string }
  const routes = [
    ...groups.flatMap(({ manifest }) => Object.values(manifest.routes).map(({ id }) => id)),
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
