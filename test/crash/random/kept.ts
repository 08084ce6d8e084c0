import { copyFileSync, globSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Conversation } from './model.js'
import type { Place } from './whole.js'

/** The files that are kept of the data folder and the workspace, without checkouts and git folders. */
const KEPT = { data: ['journals/**', 'logs/**', 'files/**'], workspace: ['work/**', '.sandbox/config/**'] } as const
const MOST_OF_FILE = 1 << 20
const MOST_OF_ALL = 32 << 20

/** Saves the faults, the requests and the files of a run; returns the folder. */
export const keep = (
  place: Place,
  name: string,
  faults: readonly string[],
  counts: object,
  conversations: readonly Conversation[],
): string => {
  const folder = resolve('.tap', 'crash', name)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const asked = conversations.map(
    ({ id, here, told }) => `${id} (${here})\n${told.map(line => `  ${line}\n`).join('')}`,
  )
  writeFileSync(join(folder, 'faults.txt'), `${faults.join('\n')}\n\n${JSON.stringify(counts)}\n\n${asked.join('\n')}`)
  let left = MOST_OF_ALL
  for (const of of ['data', 'workspace'] as const) {
    for (const file of KEPT[of].flatMap(pattern => globSync(pattern, { cwd: place[of] }))) {
      const stat = statSync(join(place[of], file), { throwIfNoEntry: false })
      if (!stat?.isFile() || stat.size > MOST_OF_FILE || stat.size > left) continue
      left -= stat.size
      mkdirSync(dirname(join(folder, of, file)), { recursive: true })
      copyFileSync(join(place[of], file), join(folder, of, file))
    }
  }
  return folder
}
