import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { deny } from './denied.js'
import type { WatchedChange, ManifestEntries } from './entries.js'
import type { HostOperations, OperationInput } from './protocol.js'
import { fileOperations, type FileHandlers } from './workspace-files.js'

type Watch = { [O in `files.${'watch' | 'unwatch'}`]: (input: OperationInput<HostOperations, O>) => void }

/** A temporary folder as the workspace of one test. */
export interface TestedWorkspace {
  readonly root: string
  readonly handlers: FileHandlers & Watch
  /** The watches that an event concerns, with the paths they are called with. */
  seen(event: WatchedChange): { watch: number; paths: string[] }[]
  remove(): void
}

/** Makes the folder with these files; its operations are those of the daemon. */
export const testedWorkspace = (
  entries: ManifestEntries,
  texts: { readonly [path: string]: string },
): TestedWorkspace => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'extension-test-')))
  for (const [path, text] of Object.entries(texts)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  const watches = new Map<number, string>()
  return {
    root,
    handlers: {
      ...fileOperations({ workspace: root, entries, used: () => {} }),
      'files.watch': ({ watch, glob }) => {
        if (!entries.mayWatch(glob)) deny(`fs:read:${glob}`)
        watches.set(watch, glob)
      },
      'files.unwatch': ({ watch }) => void watches.delete(watch),
    },
    seen: event =>
      [...watches].flatMap(([watch, glob]) => {
        const paths = entries.watched(glob, event)
        return paths.length > 0 ? [{ watch, paths }] : []
      }),
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}
