import { join } from 'node:path'
import { refuse, type Context, ignored } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { record } from '../../../sdk/node/record/record.js'
import { approvedBy } from '../approval/approval.js'
import type { LoadedExtensions } from '../listing/loaded-extensions.js'
import { problemsOf } from '../listing/problems.js'
import { powersDigest } from '../powers/compared.js'
import { listingIn, type Registries } from '../update/registry.js'
import type { InstallLog, InstallPreview, InstallResult, InstallSource } from './contract.js'
import type { CodeStaging, LinkedSource, StagedCode } from './staging.js'

/** The dependencies of installing. */
export interface InstallDeps {
  readonly all: LoadedExtensions
  readonly staging: CodeStaging
  readonly registries: Registries
}

interface Trust {
  readonly trust: InstallPreview['trust']
  readonly trustReason?: string
}

const trustOf = async (
  registries: Registries,
  registry: string | undefined,
  id: string,
  ref: string,
): Promise<Trust> => {
  if (registry === undefined) return { trust: 'unlisted' }
  const listed = listingIn(await registries.read(registry), id)
  if (!listed) return { trust: 'unlisted', trustReason: `${registry} does not list it` }
  const { trust = 'listed', trustReason } = listed
  if (trust !== 'blocked' && listed.source.ref !== ref)
    return { trust: 'unlisted', trustReason: `${registry} lists another commit, ${listed.source.ref.slice(0, 40)}` }
  return { trust, ...(trustReason !== undefined && { trustReason }) }
}

const conflictOf = (all: LoadedExtensions, id: string): string | undefined =>
  all.catalog.loaded.get(id)?.shown ?? (all.kept.get(id)?.installed ? id : undefined)

/** The powers that installing a commit would approve. */
export const installPreview = async (
  { all, staging, registries }: InstallDeps,
  source: InstallSource,
): Promise<InstallPreview> => {
  const staged = await staging.fetch(source)
  try {
    const { id, manifest, compatible, powers, folder } = staged
    const conflicts = conflictOf(all, id)
    return {
      ...{ id, manifest, ref: source.ref, compatible },
      ...(await trustOf(registries, source.registry, id, source.ref)),
      powers: powers.map(({ text }) => text),
      digest: powersDigest(id, powers),
      problems: await problemsOf(staged, { routes: all.routes, earlier: [...all.catalog.loaded.values()] }),
      size: { files: folder.files.size, bytes: folder.bytes },
      ...(conflicts !== undefined && { conflicts }),
    }
  } finally {
    await staging.drop(staged.root)
  }
}

/** Installs a commit; refusals come before the first line of the stream. */
export const installExtension = async (
  deps: InstallDeps,
  source: InstallSource & LinkedSource & { digest: string },
  context: Context,
): Promise<AsyncIterable<InstallLog | InstallResult>> => {
  const { all, staging, registries } = deps
  const { ref, registry, digest } = source
  const staged = await staging.fetch(source)
  const { id, powers } = staged
  try {
    const { trust, trustReason } = await trustOf(registries, registry, id, ref)
    if (trust === 'blocked') refuse('conflict', `${registry} blocks ${id}: ${trustReason ?? 'it gives no reason'}`)
    if (powersDigest(id, powers) !== digest)
      refuse(
        'conflict',
        `the digest is not that of the powers of ${id}: preview the install, and approve what it shows`,
      )
    const taken = conflictOf(all, id)
    if (taken !== undefined || all.turns.held(id)) refuse('conflict', `the id ${id} is taken: ${taken ?? 'by now'}`)
  } catch (error) {
    await staging.drop(staged.root)
    throw error
  }
  // Closing the stream does not stop it.
  const installed = all.turns.with(id, () => placed(deps, staged, source, context))
  installed.catch(ignored('the stream and the record of the extension tell it'))
  return told(installed, `fetched ${id} at ${ref}`)
}

async function* told(installed: Promise<InstallResult>, first: string): AsyncGenerator<InstallLog | InstallResult> {
  yield { kind: 'log', message: first }
  yield await installed
}

const placed = async (
  { all, staging }: InstallDeps,
  staged: StagedCode,
  { url, ref, path, secret, registry, link }: InstallSource & LinkedSource,
  context: Context,
): Promise<InstallResult> => {
  const { id, version, manifest, powers } = staged
  try {
    await staging.place(staged, join(all.codeFolder, id, ref), false)
  } catch (error) {
    await staging.drop(staged.root)
    throw error
  }
  const approval = approvedBy(powers, context)
  await all.kept.put({
    ...{ id, source: 'installed', enabled: true },
    installed: {
      url,
      ...(path !== undefined && { path }),
      ...(secret !== undefined && { secret }),
      ...(registry !== undefined && { registry }),
      ...(link !== undefined && { link }),
      current: { ref, version, approval },
      policy: { updates: 'notify', advisories: 'auto-disable' },
    },
  })
  failpoint('extensions.install.recorded')
  await all.catalog.reload(id)
  await all.converge(id)
  all.changed(id)
  const extra = { id, url, ref, powers: powers.map(({ text }) => text).join('; ') }
  await record(all.host, { type: 'extension.installed', outcome: 'ok', extra }, context)
  const backend = all.backendOf(all.get(id))
  const rebuildNeeded = manifest.contributes?.environment !== undefined
  return { kind: 'result', id, commit: ref, rebuildNeeded, ...(backend && { backend: { ...backend } }) }
}
