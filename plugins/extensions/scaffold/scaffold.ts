import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, type Context } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { flushFolder } from '../../../sdk/node/files/files.js'
import { entryExists, foldersIn, inRealFolder, writeBelow } from '../../../sdk/node/files/real-folders.js'
import { record } from '../../../sdk/node/record/record.js'
import { approvedBy } from '../approval/approval.js'
import { parseExtension, MANIFEST_FILE } from '../manifest/parse.js'
import { declaredPowers } from '../powers/powers.js'
import type { LoadedExtensions } from '../listing/loaded-extensions.js'
import { WORKSPACE_EXTENSIONS, WORKSPACE_FOLDER } from '../listing/workspace-folder.js'
import { scaffoldFiles } from './scaffold-files.js'

/** A folder that is being filled; no extension's folder begins so. */
const STAGED = '.new-'

/** Writes a new extension into the workspace, approved as it is. */
export const createExtension = async (
  all: LoadedExtensions,
  { publisher, name }: { publisher: string; name: string },
  context: Context,
): Promise<{ id: string; dir: string }> => {
  if (publisher === 'sandbox')
    refuse('invalid', 'publisher: sandbox is reserved for the sandbox itself: choose another one', {
      errors: [{ path: 'publisher', expected: 'another one than sandbox', value: publisher }],
    })
  const id = `${publisher}.${name}`
  return all.turns.with(id, async () => {
    const dir = `${WORKSPACE_FOLDER}/${name}`
    await all.catalog.rescan()
    const known = all.catalog.loaded.get(id)
    if (known) refuse('conflict', `there is an extension ${id} already: ${known.shown}`)
    const taken = await inRealFolder(workspaceOf(all), WORKSPACE_EXTENSIONS, {}, at => entryExists(join(at, name)))
    if (taken) refuse('conflict', `${dir} is there already: choose another name, or remove it`)
    if (all.kept.get(id)?.installed) refuse('conflict', `there is an extension ${id} already`)
    const files = scaffoldFiles(publisher, name)
    await sweepStaged(all)
    for (const [file, text] of Object.entries(files))
      await writeBelow(workspaceOf(all), [...WORKSPACE_EXTENSIONS, STAGED + name], { name: file, data: text })
    const parsed = parseExtension(Buffer.from(files[MANIFEST_FILE]!), name)
    if ('error' in parsed) throw new Error(parsed.error)
    const approval = approvedBy(declaredPowers(parsed.manifest), context)
    await all.kept.put({ id, source: 'workspace', enabled: true, approval, creating: name })
    failpoint('extensions.create.noted')
    await inRealFolder(workspaceOf(all), WORKSPACE_EXTENSIONS, {}, async at => {
      await rename(join(at, STAGED + name), join(at, name))
      await flushFolder(at)
    })
    failpoint('extensions.create.moved')
    await all.kept.put({ id, source: 'workspace', enabled: true, approval, folder: name })
    await all.catalog.rescan()
    await all.converge(id)
    all.changed(id)
    await record(all.host, { type: 'extension.created', outcome: 'ok', extra: { id, dir } }, context)
    return { id, dir }
  })
}

const workspaceOf = ({ host }: LoadedExtensions): string => host.place.workspace

/** Removes the files of an interrupted creation. */
const sweepStaged = async (all: LoadedExtensions): Promise<void> => {
  await inRealFolder(workspaceOf(all), WORKSPACE_EXTENSIONS, {}, async at => {
    for (const name of await foldersIn(at))
      if (name.startsWith(STAGED)) await rm(join(at, name), { recursive: true, force: true })
  })
}

/** Completes or undoes an interrupted creation: an extension and its approval both exist, or neither. */
export const recoverCreations = async (all: LoadedExtensions): Promise<void> => {
  await sweepStaged(all)
  for (const kept of all.kept.all()) {
    const { creating, ...rest } = kept
    if (creating === undefined) continue
    if (all.catalog.loaded.has(kept.id)) await all.kept.put(rest)
    else await all.kept.delete(kept.id)
  }
}
