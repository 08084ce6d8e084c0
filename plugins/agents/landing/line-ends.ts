import { copyFile, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { bytePath } from '../../../sdk/node/byte-names.js'
import type { ScratchRepo } from '../work/scratch-repo.js'
import { treeEntriesOf } from '../work/tree-diff.js'
import { copyOf } from './main-state.js'
import type { Step } from './plan.js'

const MOST_BYTES = 16 * 1024 * 1024
const CRLF = '\r\n'

/** The line ends of a text, where all of them are alike. */
const endsOf = (text: string): '\n' | typeof CRLF | undefined => {
  if (text.includes('\0')) return undefined
  const lines = text.split('\n').length - 1
  const long = text.split(CRLF).length - 1
  if (lines === 0 || (long > 0 && long < lines)) return undefined
  return long === 0 ? '\n' : CRLF
}

/** The text of a file, one character for each byte; undefined: it is too large. */
const textAt = async (path: string): Promise<string | undefined> => {
  const place = bytePath(path)
  return (await stat(place)).size > MOST_BYTES ? undefined : readFile(place, 'latin1')
}

/** The text of a new file with the line ends of the file that it is like; undefined: they are alike already. */
const changedText = async (scratch: ScratchRepo, out: string, { path, like, after }: Step) => {
  if (like === undefined || !after?.mode.startsWith('100')) return undefined
  const [text, kept] = [await textAt(join(out, path)), await textAt(copyOf(scratch, like))]
  if (text === undefined || kept === undefined) return undefined
  const [from, to] = [endsOf(text), endsOf(kept)]
  return from === undefined || to === undefined || from === to ? undefined : text.replaceAll(from, to)
}

/**
 * Gives new files the line ends of the person's files that they replace or were renamed from, where git stores the same
 * for both: a setting or attribute that came after a checkout changes no file that is not touched otherwise.
 *
 * @param out The folder with the new files, which the index `out` lists.
 */
export const keepLineEnds = async (scratch: ScratchRepo, out: string, steps: readonly Step[]): Promise<void> => {
  const tree = await scratch.place('ends')
  const changed = new Map<string, Step>()
  for (const step of steps) {
    const text = await changedText(scratch, out, step)
    if (text === undefined) continue
    const place = join(tree, step.path)
    await mkdir(bytePath(dirname(place)), { recursive: true })
    await writeFile(bytePath(place), text, 'latin1')
    changed.set(step.path, step)
  }
  if (changed.size === 0) return
  const index = 'ends'
  await copyFile(scratch.index('out'), scratch.index(index))
  await scratch.convert(['update-index', '--add', '--replace', '-z', '--stdin'], [...changed.keys()], { index, tree })
  const stored = await treeEntriesOf(scratch, index, new Set(changed.keys()))
  for (const [path, { after }] of changed) {
    if (stored.get(path)?.id !== after!.id) continue
    // Written into the file that is there, which keeps its mode.
    await writeFile(bytePath(join(out, path)), await readFile(bytePath(join(tree, path))))
  }
}
