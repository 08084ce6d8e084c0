import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { WallGrants } from '../../sdk/index.js'
import { onceIn } from './changes.js'

/** A folder of the test's own beside all others; behind a wall it is there where `grants` names it. */
export const openFolder = (t: Test): string => {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'open-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}

/** A program that never ends, and the moment when it is started. */
export const stuckProgram = (
  t: Test,
): { readonly path: string; readonly grants: WallGrants; reached(): Promise<void> } => {
  const folder = openFolder(t)
  const path = join(folder, 'program')
  writeFileSync(path, `#!/bin/sh\n: > '${path}.on'\nsleep 3572\n`, { mode: 0o755 })
  return { path, grants: { read: [], write: [folder] }, reached: () => onceIn(folder, () => existsSync(`${path}.on`)) }
}
