import type { Contract, Host } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { appCalls } from './apps/calls.js'
import { archiveCalls } from './archives/calls.js'
import { classifyCalls } from './classify/calls.js'
import { workspaceContract, type WorkspaceCalls } from './contract.js'
import { derivedCalls, openDerived } from './derived/calls.js'
import { DocumentTexts } from './derived/document-texts.js'
import { examples } from './examples.js'
import { fileCalls } from './files/calls.js'
import { projectCalls } from './projects/calls.js'
import { InstalledPrograms } from './projects/installed-programs.js'
import { Installs } from './projects/installs.js'
import { MANAGER_PROGRAMS } from './projects/managers.js'
import { repositoryCalls } from './repositories/calls.js'
import { searchCalls } from './search/calls.js'
import { transferCalls } from './transfer/calls.js'
import { trashCalls } from './trash/calls.js'
import { TrashStore } from './trash/trash-store.js'
import { treeCalls } from './tree/calls.js'
import { uploadCalls } from './upload/calls.js'
import { WorkspaceChanges } from './watch/changes.js'

export const contract: Contract<WorkspaceCalls> = { ...workspaceContract, examples }

/** Serves the files of the workspace. */
export const activate = async (host: Host): Promise<void> => {
  const changes = new WorkspaceChanges(host)
  const locks = new KeyedMutex()
  const trash = new TrashStore(host.place.workspace, host.files)
  await trash.open()
  const programs = new InstalledPrograms(host.place, MANAGER_PROGRAMS)
  const derived = openDerived(host)
  const projects = { host, programs, installs: await Installs.open(host) }
  await host.serve(workspaceContract, {
    ...treeCalls(host, changes),
    ...fileCalls(host, changes, locks),
    ...classifyCalls(host),
    ...repositoryCalls(host),
    ...searchCalls(host, changes, new DocumentTexts(host, derived)),
    ...derivedCalls(host, derived),
    ...archiveCalls(host, changes, locks),
    ...transferCalls(host),
    ...uploadCalls(host, changes, locks),
    ...trashCalls({ host, changes, locks, trash }),
    ...projectCalls(projects),
    ...(await appCalls({ ...projects, changes })),
  })
}
