import { lstat, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { readPlain } from '../files/files.js'
import { codeOf, contains } from '../files/paths.js'
import { kindOf, note, real, shownAsIs } from './sources.js'
import type { Mount, WallGitdir, WallSpec } from './spec.js'

const quoted = (value: string): string => `"${value.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`

/** Parts of a repository that git reads before any other setting, and from the git dir's own file alone. */
const EXTENSIONS = ['objectFormat', 'partialClone'] as const

/**
 * The settings of a copy's own git dir: those of its repository, which is seen at a path.
 *
 * @param common Where its settings can be read now.
 */
export const ownConfig = (common: string, seenAt: string): string => {
  const text = readPlain(join(common, 'config')) ?? ''
  const extensions = EXTENSIONS.flatMap(name => {
    const value = new RegExp(`^\\s*${name}\\s*=\\s*([\\w.-]+)`, 'im').exec(text)?.[1]
    return value === undefined ? [] : [`\t${name} = ${value}`]
  })
  return [
    '[core]',
    `\trepositoryFormatVersion = ${extensions.length > 0 ? 1 : 0}`,
    `\thooksPath = ${quoted(join(seenAt, 'hooks'))}`,
    '[include]',
    `\tpath = ${quoted(join(seenAt, 'config'))}`,
    '[core]',
    '\tbare = false',
    '\tlogAllRefUpdates = true',
    ...(extensions.length > 0 ? ['[extensions]', ...extensions] : []),
    '',
  ].join('\n')
}

/** Puts a plain file where something is to be mounted over: building the wall would wait at a pipe for ever. */
const plainFile = async (path: string): Promise<void> => {
  const held = await lstat(path).catch(() => undefined)
  if (held?.isFile()) return
  if (held) await rm(path, { recursive: true, force: true })
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, '', { flag: 'wx' }).catch(error =>
    codeOf(error) === 'EEXIST' ? undefined : Promise.reject(error),
  )
}

/**
 * A copy's git dir, at a path of its own in the data folder's place, and the repository it borrows from beside it.
 *
 * The copy's own is writable, but for what is the repository's alone: its settings, its attributes, the patterns it
 * ignores, and where objects are borrowed. Nothing of the repository is.
 */
export const gitdir = async (spec: WallSpec, copy: string, repository: WallGitdir, index: number): Promise<Mount[]> => {
  const { path, common, own } = repository
  const at = join(spec.data, 'git', String(index))
  const lender = `${at}.repository`
  // One that is gone is not made up again by what is made below it.
  for (const folder of [common, join(common, 'objects'), own, join(own, 'objects')]) await real(folder)
  const alternates = join('objects', 'info', 'alternates')
  const [excludes, attributes] = [join('info', 'exclude'), join('info', 'attributes')]
  for (const name of [alternates, excludes, attributes, 'config']) await plainFile(join(own, name))
  const asIs = contains(spec.workspace, common) || contains(spec.data, common) ? [] : await shownAsIs(common)
  await real(join(copy, path))
  const ignored = [readPlain(join(common, excludes)) ?? '', '/.sandbox/', ...(repository.exclude ?? []), ''].join('\n')
  const lfs =
    (await kindOf(join(common, 'lfs'))) === 'folder' ? [['show', join(common, 'lfs'), join(at, 'lfs')] as const] : []
  return [
    ...asIs,
    ['show', await real(common), lender],
    ['bind', await real(own), at],
    ['show', await note(spec.data, `${join(lender, 'objects')}\n`), join(at, alternates)],
    ['show', await note(spec.data, ownConfig(common, lender)), join(at, 'config')],
    ['show', await note(spec.data, ignored), join(at, excludes)],
    ['show', await note(spec.data, readPlain(join(common, attributes)) ?? ''), join(at, attributes)],
    ...lfs,
    ['show', await note(spec.data, `gitdir: ${at}\n`), join(spec.workspace, path, '.git')],
  ]
}
