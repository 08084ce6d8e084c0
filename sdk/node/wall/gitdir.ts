import { lstat, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { readPlain } from '../files/files.js'
import { codeOf, contains } from '../files/paths.js'
import { kindOf, note, real, shownAsIs } from './sources.js'
import type { Mount, WallGitdir, WallSpec } from './spec.js'

/** The folder, in the data folder, of the git folders of repositories that the daemon cloned or began. */
export const gitdirsIn = (data: string): string => join(data, 'gitdirs')

/** These git folders. */
export const everyGitdir = async (data: string): Promise<string[]> => {
  const names = await readdir(gitdirsIn(data)).catch(() => [] as string[])
  return names.map(name => join(gitdirsIn(data), name))
}

const quoted = (value: string): string => `"${value.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`

/** Extensions that git reads before other settings, and only from the git dir's own config file. */
const EXTENSIONS = ['objectFormat', 'partialClone'] as const

/**
 * The config of a copy's git dir, which includes that of its repository.
 *
 * @param common The repository's git dir, where its config can be read now.
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

/** Ensures that a mount target is a plain file: building the wall would block on a FIFO. */
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
 * Mounts a copy's git dir, and next to it the repository that it borrows objects from, below the data folder's path.
 *
 * The copy's git dir is writable except for its config, attributes, excludes and alternates. The repository is
 * read-only.
 */
export const gitdir = async (spec: WallSpec, copy: string, repository: WallGitdir, index: number): Promise<Mount[]> => {
  const { path, common, own } = repository
  const at = join(spec.gitdirsAt ?? join(spec.data, 'git'), String(index))
  const lender = `${at}.repository`
  // Refuses a missing folder, which creating files below it would recreate.
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
