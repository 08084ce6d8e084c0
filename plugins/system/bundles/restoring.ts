import { randomBytes } from 'node:crypto'
import { lstat, mkdir, rename, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type Host, refuse } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { flushTree } from '../../../sdk/node/files/files.js'
import { MOVES, planMoves, returnedFolder, type Move } from '../../../sdk/node/files/moves.js'
import { inside } from '../../../sdk/node/files/paths.js'
import type { RestoreReport } from './contract.js'
import type { BundleManifest } from './manifest.js'
import { handedOver } from './exports.js'
import { readBundle } from './reading.js'
import { topOf, unitsOf } from './returning.js'
import { Judge, namesIn, privateFolder, Staging, type Judged, type StagingTarget } from './staging.js'
import { findRepositories } from './workspace-files.js'

/** A requested restore. */
export interface RestoreAsked {
  readonly path: string
  readonly passphrase?: string
  /** The digest of the bundle that somebody looked at. */
  readonly expect?: string
}

type RestoreHost = Pick<Host, 'call' | 'collect' | 'serves' | 'place' | 'signal'>

const KEPT_MS = 7 * 24 * 3_600_000
const SANDBOX = '.sandbox'
const RESTORED = 'restored'
const CONFIG = 'config'
const [NEW, BEFORE] = ['new', 'before']
const STAMP = /^\d{13}-[0-9a-f]{6}$/

/** Lists what a bundle would restore; writes nothing. */
export const checkBundle = async (host: RestoreHost, asked: RestoreAsked): Promise<RestoreReport> => {
  const judge = new Judge(await targetOf(host))
  const path = await bundleAt(host, asked.path)
  const { manifest, digest } = await readBundle(path, asked.passphrase, judge, host.signal)
  assertSeen(asked, digest)
  const { judged } = judge
  const tops = manifest.repositories.flatMap(({ repo }) => (repo === 'root' ? [] : [topOf(repo)]))
  const brought = [...judged.written.flatMap(({ path }) => (path.includes('/') ? [] : [path])), ...tops]
  await foldersOf(host, manifest, own([...new Set(brought)]))
  return reportOf(manifest, judged, digest, [])
}

/** Unpacks and verifies a bundle, and records the moves with which the next start puts it in place. */
export const stageBundle = async (host: RestoreHost, asked: RestoreAsked): Promise<RestoreReport> => {
  const { workspace, data } = host.place
  const path = await bundleAt(host, asked.path)
  await refuseAtWork(host)
  const stamp = `${Date.now()}-${randomBytes(3).toString('hex')}`
  const beside = await privateFolder(workspace, SANDBOX, RESTORED)
  const places = { workspace: join(beside, stamp, NEW), data: join(stagedFolder(host), stamp) }
  const staging = new Staging(places, await targetOf(host))
  let planned = false
  try {
    const { manifest, digest } = await readBundle(path, asked.passphrase, staging, host.signal)
    assertSeen(asked, digest)
    await staging.end(manifest, host.signal)
    failpoint('bundle.staged')
    const before = join(beside, stamp, BEFORE)
    const moves = await movesOf(host, manifest, places, before)
    await keepState(host, stamp)
    await refuseAtWork(host)
    await planMoves(join(data, MOVES), { ...moves, root: workspace })
    planned = true
    failpoint('bundle.planned')
    const until = new Date(Number(stamp.split('-')[0]) + KEPT_MS).toISOString().slice(0, 10)
    return reportOf(manifest, staging.judged, digest, [
      `the previous state is kept in ${SANDBOX}/${RESTORED}/${stamp}/${BEFORE} until ${until}: take from it what `
        + 'is missing',
    ])
  } finally {
    if (!planned)
      await Promise.all([join(beside, stamp), places.data].map(folder => rm(folder, { recursive: true, force: true })))
  }
}

/** Refuses a bundle that is not the one that somebody looked at. */
const assertSeen = ({ path, expect }: RestoreAsked, digest: string): void => {
  if (expect === undefined || expect === digest) return
  refuse('conflict', `${path} is not the bundle that was seen: check it again, then restore it`, {
    fields: { digest },
  })
}

type Places = Pick<Host, 'place'>

/** Removes the files of a restore that was killed before it was recorded. Call it before another may begin. */
export const sweepCutOff = async (host: Places): Promise<void> => {
  if (await isPlanned(host)) return
  await rm(stagedFolder(host), { recursive: true, force: true })
  for (const point of await keptBefore(host)) {
    await rm(join(point, NEW), { recursive: true, force: true })
    if ((await namesIn(point)).length === 0) await rm(point, { recursive: true, force: true })
  }
}

/** Removes restore points older than a week, except the one being made. */
export const sweepPoints = async (host: Places, now = Date.now()): Promise<void> => {
  if (await isPlanned(host)) return
  const points = join(host.place.folder, POINTS)
  const all = [...(await namesIn(points)).map(name => join(points, name)), ...(await keptBefore(host))]
  for (const point of all) if (isOld(basename(point), now)) await rm(point, { recursive: true, force: true })
}

/** Whether a restore waits for the next start. */
const isPlanned = async ({ place }: Places): Promise<boolean> =>
  (await lstat(join(place.data, MOVES)).catch(() => undefined)) !== undefined

/** The workspace folder for what a restore replaced. */
const keptBefore = async ({ place }: Places): Promise<string[]> => {
  const sandbox = join(place.workspace, SANDBOX)
  const restored = join(sandbox, RESTORED)
  for (const folder of [sandbox, restored]) if (!(await lstat(folder).catch(() => undefined))?.isDirectory()) return []
  return (await namesIn(restored)).filter(name => STAMP.test(name)).map(name => join(restored, name))
}

const isOld = (stamp: string, now: number): boolean => STAMP.test(stamp) && Number(stamp.split('-')[0]) < now - KEPT_MS

const stagedFolder = ({ place }: Places): string => join(place.folder, 'staged')

const bundleAt = async ({ place }: RestoreHost, path: string): Promise<string> => inside(place.workspace, path)

const targetOf = async (host: RestoreHost): Promise<StagingTarget> => {
  const groups = new Set((await host.collect('bundle.takers')).flat())
  return { workspace: host.place.workspace, takes: group => groups.has(group) }
}

const refuseAtWork = async (host: RestoreHost): Promise<void> => {
  if (!(await host.serves('agent.conversations'))) return
  const { conversations } = await host.call('agent.conversations')
  const busy = conversations.filter(({ live }) => live).map(({ conversation }) => conversation.id)
  if (busy.length > 0)
    refuse(
      'conflict',
      `turns are running (${busy.slice(0, 5).join(', ')}): stop them, or wait for their end, and restore again`,
    )
}

/** A whole bundle replaces everything in the workspace, another one only the folders of its repositories. */
const movesOf = async (
  host: RestoreHost,
  manifest: BundleManifest,
  places: { workspace: string; data: string },
  before: string,
): Promise<{ away: Move[]; in: Move[] }> => {
  const { workspace, data } = host.place
  const units = await foldersOf(host, manifest, own(await namesIn(places.workspace)))
  const config = join(SANDBOX, CONFIG)
  const configured = (await namesIn(join(places.workspace, SANDBOX))).includes(CONFIG)
  const away = [...units.away, ...(configured ? [config] : [])].map(name => ({
    from: join(workspace, name),
    to: join(before, name),
  }))
  const into = [...units.in, ...(configured ? [config] : [])].map(name => ({
    from: join(places.workspace, name),
    to: join(workspace, name),
  }))
  const state = manifest.whole ? await namesIn(join(places.data, 'state')) : []
  return {
    away,
    in: [
      ...into,
      ...state.map(group => ({ from: join(places.data, 'state', group), to: returnedFolder(data, group) })),
    ],
  }
}

const own = (names: readonly string[]): string[] => names.filter(name => name !== SANDBOX)

/** What is removed and what is added, by the names the bundle has at the top of the workspace; refuses conflicts. */
const foldersOf = async (
  { place: { workspace } }: Places,
  manifest: BundleManifest,
  brought: string[],
): Promise<{ away: string[]; in: string[] }> => {
  if (manifest.whole) return { away: own(await namesIn(workspace)), in: brought }
  const units = unitsOf(manifest) ?? brought
  for (const unit of units) await refuseBehind(workspace, unit)
  // A restored repository replaces its whole folder, including other things in it.
  const repos = manifest.repositories.map(({ repo }) => repo)
  const left = (await findRepositories(workspace))
    .map(({ repo }) => repo)
    .filter(repo => repo !== 'root' && !repos.includes(repo))
  const covered = left.find(repo => units.some(unit => repo.startsWith(`${unit}/`) || repo === unit))
  if (covered !== undefined)
    refuse(
      'conflict',
      `the folder of ${covered} would be replaced, and the bundle does not hold that repository: move it away first`,
    )
  return { away: units, in: units }
}

/** Refuses a folder that could only be reached through a link or a file of the workspace. */
const refuseBehind = async (workspace: string, path: string): Promise<void> => {
  for (let end = path.indexOf('/'); end > 0; end = path.indexOf('/', end + 1)) {
    const at = path.slice(0, end)
    const found = await lstat(join(workspace, at)).catch(() => undefined)
    if (!found) return
    const what = found.isSymbolicLink() ? 'a link' : 'a file'
    if (!found.isDirectory())
      refuse('conflict', `${at} is ${what} in the workspace, and the bundle brings back ${path}: move ${at} away first`)
  }
}

const POINTS = 'restore-points'

/**
 * Moves the groups' current state to the restore point: beside the files of the workspace, but not readable for turns.
 */
const keepState = async (host: RestoreHost, stamp: string): Promise<void> => {
  for (const { group, files } of await handedOver(host)) {
    const folder = join(host.place.folder, POINTS, stamp, group)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    for (const { name, path } of files) await rename(path, join(folder, name))
    await flushTree(folder)
  }
}

const reportOf = (
  { from, secrets, repositories }: BundleManifest,
  { written, skipped }: Judged,
  digest: string,
  todo: readonly string[],
): RestoreReport => ({
  from: { ...from },
  written,
  skipped,
  todo: [
    ...todo,
    ...(secrets ? ['the values of secrets were not restored: set them again'] : []),
    ...(repositories.some(({ remotes }) => remotes.length > 0)
      ? ['sign in again where repositories are pushed to: their addresses were restored without credentials']
      : []),
  ],
  restarting: false,
  digest,
})
