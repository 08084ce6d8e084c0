import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { onceIn } from './changes.js'

/** A folder of the test's own that can also be written behind a wall, where that of other files is part of the program's. */
export const openFolder = (t: Test): string => {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'open-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}

/** A program that whoever runs it waits for in vain, and the moment when somebody does. */
export const stuckProgram = (t: Test): { readonly path: string; reached(): Promise<void> } => {
  const folder = openFolder(t)
  const path = join(folder, 'program')
  writeFileSync(path, `#!/bin/sh\n: > '${path}.on'\nsleep 3572\n`, { mode: 0o755 })
  return { path, reached: () => onceIn(folder, () => existsSync(`${path}.on`)) }
}
