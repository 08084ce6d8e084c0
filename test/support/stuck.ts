import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { WallGrants } from '../../sdk/index.js'
import { onceIn } from './changes.js'

/** A separate folder for the test; behind a wall it is visible only if `grants` names it. */
export const openFolder = (t: Test): string => {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'open-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}

/** A program that never ends, and a promise of its start. */
export const stuckProgram = (
  t: Test,
): { readonly path: string; readonly grants: WallGrants; reached(): Promise<void> } => {
  const folder = openFolder(t)
  const path = join(folder, 'program')
  writeFileSync(path, `#!/bin/sh\n: > '${path}.on'\nsleep 3572\n`, { mode: 0o755 })
  return { path, grants: { read: [], write: [folder] }, reached: () => onceIn(folder, () => existsSync(`${path}.on`)) }
}
