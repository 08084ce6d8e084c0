import { reachOf, refuse, type Contract, type Caller, type Host, type ReachFolder } from '../../sdk/index.js'
import { resolvePath } from '../../sdk/node/files/workspace-paths.js'
import { record } from '../../sdk/node/record/record.js'
import { limitsOf } from '../../sdk/node/access/access-view.js'
import { AreaFile, type StoredArea } from './area-file.js'
import { areas, type Area, type Holder, type Areas } from './contract.js'
import { examples } from './examples.js'
import { coverageOf } from './coverage.js'
import { foldersOf, grantedFolders, problemOf } from './folders.js'
import { foldersReached, given, holdersOf, people, reachAt, type Person } from './roster.js'
import { AreaFolders } from './area-folders.js'

const RESERVED = new Set(['reach'])

export const contract: Contract<Areas> = { ...areas, examples }

/** Stores named sets of folders, and resolves what their holders reach. */
export const activate = async (host: Host): Promise<void> => {
  const { workspace } = host.place
  const file = new AreaFile(host.files)
  await file.load()

  const areaFolders = new AreaFolders({
    workspace,
    signal: host.signal,
    find: id => file.find(id),
    moved: async ids => {
      const roster = await people(host)
      await close([...ids].flatMap(id => holdersOf(roster, id)))
    },
    failed: error => host.signal.aborted || host.log.warn('checking area folders failed', { error: String(error) }),
  })

  /** Ends the open streams and sessions of people whose reach changed. */
  const close = async (holders: readonly Holder[]): Promise<void> => {
    const emails = holders.flatMap(({ email, pending }) => (pending ? [] : [email]))
    for (const email of new Set(emails)) await host.call('kernel.members.moved', { email })
  }

  /** Each existing area once. */
  const found = (ids: Iterable<string>): StoredArea[] => [...new Set(ids)].flatMap(id => file.find(id) ?? [])

  /** What these areas grant now, by id; an unknown one grants nothing. */
  const grantsOf = async (ids: Iterable<string>): Promise<Map<string, ReachFolder[]>> =>
    new Map(await Promise.all(found(ids).map(async area => [area.id, await grantedFolders(workspace, area)] as const)))

  const reached = async (ids: Iterable<string>) => reachOf([...(await grantsOf(ids)).values()].flat())

  /** An area as a caller sees it; only maintainers and the owner see its holders. */
  const shown = async (area: StoredArea, roster: readonly Person[] | undefined): Promise<Area> => {
    const looked = await Promise.all(
      area.folders.map(async folder => ({ folder, problem: await problemOf(workspace, folder) })),
    )
    const problems = looked.flatMap(({ folder, problem }) => (problem ? [{ folder, problem }] : []))
    return {
      ...area,
      folders: [...area.folders],
      ...(problems.length > 0 && { problems }),
      ...(roster && { holders: holdersOf(roster, area.id) }),
    }
  }

  const rosterFor = async (caller: Caller) => (audits(caller) ? people(host) : undefined)

  /** Publishes that an area changed. */
  const tell = async (id: string, held: boolean): Promise<void> => {
    await host.call('kernel.events.publish', { domain: 'areas', key: id })
    if (held) await host.call('kernel.events.publish', { domain: 'members' })
  }

  await host.serve(areas, {
    'GET /areas': async (_input, { caller }) => {
      const limits = limitsOf(caller)
      const mine = held(caller).filter(id => file.find(id))
      const all = audits(caller) || caller.kind === 'token'
      const roster = await rosterFor(caller)
      const listed = file.all.filter(({ id }) => all || mine.includes(id))
      return {
        areas: await Promise.all(listed.map(area => shown(area, roster))),
        limited: limits !== undefined,
        mine,
        folders: limits ? [...(await reached(limits))] : [{ path: '.', access: 'work' as const }],
      }
    },
    'GET /areas/reach': async ({ path, email }) => {
      if ((path === undefined) === (email === undefined))
        refuse('invalid', 'expected one of path and email, found both or neither')
      const roster = await people(host)
      const grants = await grantsOf(roster.flatMap(person => person.areas ?? []))
      if (email !== undefined) {
        const person =
          roster.find(each => each.email.toLowerCase() === email.toLowerCase())
          ?? refuse('not-found', `there is no member ${JSON.stringify(email.slice(0, 254))}`)
        const folders = foldersReached(
          person,
          grants,
          reachOf((person.areas ?? []).flatMap(id => grants.get(id) ?? [])),
        )
        const access = folders.some(each => each.access === 'work') ? 'work' : folders.length > 0 ? 'read' : 'none'
        return {
          people: [
            { email: person.email, role: person.role, access, via: [...new Set(folders.flatMap(({ via }) => via))] },
          ],
          folders,
        }
      }
      const found = await resolvePath(workspace, path!)
      const real =
        'path' in found && found.kind !== 'closed'
          ? found.path
          : refuse('not-found', `nothing in the workspace is named ${path}`)
      return { path: real, people: roster.map(person => reachAt(person, grants, real)) }
    },
    'GET /areas/{id}': async ({ id }, context) => {
      const { caller } = context
      const limits = limitsOf(caller)
      const area = limits && !limits.includes(id) ? file.missing(id) : file.get(id)
      const [plain, covered] = await Promise.all([
        shown(area, await rosterFor(caller)),
        coverageOf(host, area, context),
      ])
      return { ...plain, ...covered }
    },
    'POST /areas': async ({ id, label, note, folders: asked, access = 'work' }, context) => {
      const { caller } = context
      if (RESERVED.has(id))
        refuse('invalid', `id: ${id} is a word of other routes; expected another id`, {
          errors: [{ path: 'id', expected: 'another id' }],
        })
      const words =
        label.trim()
        || refuse('invalid', 'label: expected words, found blanks only', {
          errors: [{ path: 'label', expected: 'words' }],
        })
      const folders = await foldersOf(workspace, asked)
      const { before, area } = await file.put(id, known => {
        const now = Date.now()
        return {
          id,
          label: words,
          ...(note && { note }),
          folders,
          access,
          createdAt: known?.createdAt ?? now,
          updatedAt: Math.max(now, (known?.updatedAt ?? 0) + 1),
          updatedBy: caller.actor,
        }
      })
      const roster = await people(host)
      const moved = before && reaches(before) !== reaches(area) ? holdersOf(roster, id) : []
      areaFolders.drop(id)
      await close(moved)
      await tell(id, moved.length > 0)
      const was = before && { before: before.folders, accessBefore: before.access }
      await record(host, { type: 'area.written', extra: { id, folders, access, ...was } }, context)
      return { area: await shown(area, audits(caller) ? roster : undefined), created: before === undefined }
    },
    'POST /areas/{id}/holders': async ({ id, add = [], remove = [], narrow = false }, context) =>
      file.alone(async (): Promise<{ holders: Holder[] }> => {
        file.get(id)
        const changes = given(await people(host), id, { add, remove, narrow })
        if (changes.length > 0) await host.call('members.setAreas', { people: changes })
        if (changes.length > 0) await tell(id, true)
        for (const { email, areas: next } of changes)
          await record(
            host,
            { type: next.includes(id) ? 'area.granted' : 'area.revoked', extra: { id, email } },
            context,
          )
        return { holders: holdersOf(await people(host), id) }
      }),
    'DELETE /areas/{id}': async ({ id }, context) => {
      await file.remove(id, async () => {
        const holders = holdersOf(await people(host), id)
        if (holders.length === 0) return
        refuse(
          'conflict',
          `${holders.map(({ email }) => email).join(', ')} hold ${id}: take it from them, then delete it`,
          { fields: { holders } },
        )
      })
      await tell(id, false)
      await record(host, { type: 'area.deleted', extra: { id } }, context)
      return { ok: true }
    },
    'areas.reach': async ({ areas: ids, email }) => {
      const still = email === undefined ? ids : await stillHeld(host, ids, email)
      return { folders: [...reachOf((await Promise.all(found(still).map(area => areaFolders.of(area)))).flat())] }
    },
    'areas.known': ({ ids }) => ({ unknown: ids.filter(id => !file.find(id)) }),
  })
}

/** What an area grants, so that a new label alone does not affect its holders. */
const reaches = ({ folders, access }: StoredArea): string => JSON.stringify([folders, access])

/** Whether a caller may see who holds which areas. */
const audits = ({ kind, role }: Caller): boolean => kind === 'session' && (role === 'maintainer' || role === 'owner')

/** The areas a caller holds, whether or not they limit the caller. */
const held = ({ areas: ids = [] }: Caller): string[] => [...ids]

/** The areas that a person still holds: the grant may have been reduced or removed. */
const stillHeld = async (
  { call, serves }: Pick<Host, 'call' | 'serves'>,
  ids: readonly string[],
  email: string,
): Promise<string[]> => {
  if (!(await serves('members.get'))) return [...ids]
  const { member } = await call('members.get', { email })
  if (!member) return []
  return ids.filter(id => member.areas === undefined || member.areas.includes(id))
}
