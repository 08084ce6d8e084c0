import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { outputFields } from '../../../sdk/node/byte-names.js'
import { readPlain } from '../../../sdk/node/files/files.js'
import type { Repository } from '../work/repository.js'
import type { ScratchRepo } from '../work/scratch-repo.js'
import type { Step } from './plan.js'

const MOST_BYTES = 1024 * 1024
const INDEX = 'person-ignored'

/**
 * The new files of a landing that the person's git would not show: it ignores their names, and does not track them.
 *
 * The work has them because it committed them by force, or renamed a tracked file.
 */
export const ignoredFiles = async (
  scratch: ScratchRepo,
  { main, folders }: Pick<Repository, 'main' | 'folders'>,
  steps: readonly Step[],
): Promise<string[]> => {
  const paths = steps.flatMap(({ path, before, after }) => (after && !before ? [path] : []))
  if (paths.length === 0) return []
  const patterns = join(scratch.folder, 'ignores')
  // Git heeds the last pattern that matches; those of the repository are stronger.
  const files = [scratch.conversion.ignores, join(folders.common, 'info/exclude')]
  await writeFile(patterns, files.map(file => readPlain(file, MOST_BYTES) ?? '').join('\n'))
  const index = (await scratch.takePersonIndex(INDEX)) ? INDEX : 'head'
  const answer = await scratch.git(['check-ignore', '-z', '--stdin'], {
    ...{ index, tree: main, settings: [`core.excludesFile=${patterns}`] },
    // A name may begin as a pathspec with magic does.
    input: paths.map(path => `./${path}\0`).join(''),
    magic: true,
    ok: [0, 1, 128],
  })
  const named = new Set(outputFields(answer))
  return paths.filter(path => named.has(`./${path}`))
}
