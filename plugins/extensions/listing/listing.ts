import type { Context } from '../../../sdk/index.js'
import { comparedPowers, powersDigest } from '../powers/compared.js'
import type { ExtensionList, ExtensionRecord, PendingExtension } from './contract.js'
import type { LoadedExtension } from './catalog.js'
import type { LoadedExtensions } from './loaded-extensions.js'
import type { DevRun, DevSource } from '../records/kept-extension.js'
import { pageCallsOf, problemsOf } from './problems.js'

/** The entries that an extension declares, whose use is counted. */
export const declaredEntries = ({ manifest }: Pick<LoadedExtension, 'manifest'>): ReadonlySet<string> =>
  new Set([...(manifest.permissions?.sandbox ?? []), ...(manifest.permissions?.daemon ?? [])])

/** The dependencies of the list. */
export interface ListingDeps {
  readonly all: LoadedExtensions
  readonly checkedAt: () => string | undefined
  readonly devRun: (id: string, dev: DevSource, context: Context) => Promise<DevRun>
}

/** Everything that is loaded or could be. */
export const listExtensions = async (
  { all, checkedAt, devRun }: ListingDeps,
  context: Context,
): Promise<ExtensionList> => {
  await all.refresh()
  const extensions: ExtensionRecord[] = builtins(all)
  const pending: PendingExtension[] = []
  const loaded = [...all.catalog.loaded.values()].filter(({ id }) => !all.kept.get(id)?.removing)
  const earlier: LoadedExtension[] = []
  for (const source of ['installed', 'workspace'] as const) {
    for (const each of loaded.filter(found => found.source === source).sort(byId)) {
      if (source === 'workspace' && each.compatible && all.isPending(each)) pending.push(pendingOf(all, each))
      else extensions.push(await recordOf({ all, devRun }, each, earlier, context))
      if (all.runnable(each.id)) earlier.push(each)
    }
  }
  const at = checkedAt()
  const invalid = all.catalog.invalid.map(({ dir, error }) => ({ dir, error }))
  return { extensions, invalid, pending, ...(at !== undefined && { updatesCheckedAt: at }) }
}

const byId = (one: { id: string }, other: { id: string }): number => (one.id < other.id ? -1 : 1)

const builtins = (all: LoadedExtensions): ExtensionRecord[] =>
  all.groups
    .map(({ name, version, calls }) => ({
      id: `sandbox.${name}`,
      manifest: {
        ...{ publisher: 'sandbox', name, version },
        permissions: { daemon: calls.filter(call => call.includes(' ')).slice(0, 100) },
      },
      ...{ commit: all.build, source: 'builtin' as const, enabled: true, essential: true, usage: {}, problems: [] },
    }))
    .sort(byId)

const recordOf = async (
  { all, devRun }: Pick<ListingDeps, 'all' | 'devRun'>,
  loaded: LoadedExtension,
  earlier: readonly LoadedExtension[],
  context: Context,
): Promise<ExtensionRecord> => {
  const { id, manifest, commit, source } = loaded
  const { installed } = all.kept.get(id) ?? {}
  const backend = all.backendOf(loaded)
  const { previous, policy, update, advisory, health, dev } = installed ?? {}
  return {
    id,
    manifest,
    commit,
    source,
    enabled: all.isEnabled(id),
    essential: false,
    usage: all.usage.of(id, declaredEntries(loaded)),
    problems: [...(await problemsOf(loaded, { routes: all.routes, earlier })), ...all.backendProblems(id)],
    ...(backend && { backend: { ...backend } }),
    ...(manifest.entry !== undefined && all.runnable(id) && { pageCalls: pageCallsOf(manifest, all.routes) }),
    ...(update && { update: { ...update } }),
    ...(advisory && { advisory: { ...advisory } }),
    ...(health && { health: { ...health } }),
    ...(previous && {
      previous: { ref: previous.ref, ...(previous.version !== undefined && { version: previous.version }) },
    }),
    ...(policy && { updatePolicy: { ...policy } }),
    ...(dev && { dev: await devRun(id, dev, context) }),
  }
}

const pendingOf = (all: LoadedExtensions, { id, shown, manifest, powers }: LoadedExtension): PendingExtension => {
  const approval = all.approvalOf(id)
  return {
    id,
    dir: shown,
    manifest,
    powers: powers.map(({ text }) => text),
    ...comparedPowers(powers, approval?.powers ?? []),
    approvedBefore: approval !== undefined,
    digest: powersDigest(id, powers),
  }
}
