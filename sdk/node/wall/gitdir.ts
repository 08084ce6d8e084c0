import { lstat, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { readPlain } from '../files/files.js'
import { codeOf, contains } from '../files/paths.js'
import { lendersOf } from './lenders.js'
import { kindOf, note, real, shownAsIs } from './sources.js'
import type { Mount, WallGitdir, WallSpec } from './spec.js'

const quoted = (value: string): string => `"${value.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`

/** The suffix of the file beside a copy's git dir with its `CopyForm`; turns cannot reach it. */
export const COPY_FORM = '.form'

/** How a private copy converts its files: as its person's git does when the copy is made, as long as the copy lives. */
export interface CopyForm {
  /** Settings of git in order, which win over those of the repository. */
  readonly settings: readonly (readonly [name: string, value: string])[]
  /** The attributes that machine and person give to all repositories. */
  readonly attributes: string
}

/** The form of a copy by its git dir; undefined for one of an earlier version. */
export const copyFormOf = (gitdir: string): CopyForm | undefined => {
  const text = readPlain(gitdir + COPY_FORM)
  return text === undefined ? undefined : (JSON.parse(text) as CopyForm)
}

/** The file in a copy's git dir with the attributes of all repositories. */
export const SHARED_ATTRIBUTES = join('info', 'attributes.shared')

/** The lines of a config file for one setting; a subsection may hold any character (git-config(1)). */
const settingLines = ([name, value]: readonly [name: string, value: string]): string[] => {
  const [section, key] = [name.slice(0, name.indexOf('.')), name.slice(name.lastIndexOf('.') + 1)]
  const inner = name.slice(section.length + 1, -(key.length + 1))
  return [
    inner === '' ? `[${section}]` : `[${section} "${inner.replace(/["\\]/g, '\\$&')}"]`,
    `\t${key} = ${quoted(value)}`,
  ]
}

/** Extensions that git reads before other settings, and only from the git dir's own config file. */
const EXTENSIONS = ['objectFormat', 'partialClone'] as const

/**
 * The config of a copy's git dir, which includes that of its repository.
 *
 * @param common The repository's git dir, where its config can be read now.
 * @param form How the copy converts its files, and the place of the shared attributes.
 */
export const ownConfig = (
  common: string,
  seenAt: string,
  form?: CopyForm & { readonly attributesAt: string },
): string => {
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
    ...(form?.settings.flatMap(settingLines) ?? []),
    ...(form ? settingLines(['core.attributesFile', form.attributesAt]) : []),
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
  for (const name of [alternates, excludes, attributes, SHARED_ATTRIBUTES, 'config']) await plainFile(join(own, name))
  const form = copyFormOf(own)
  const asIs = contains(spec.workspace, common) || contains(spec.data, common) ? [] : await shownAsIs(common)
  await real(join(copy, path))
  const ignored = [readPlain(join(common, excludes)) ?? '', '/.sandbox/', ...(repository.exclude ?? []), ''].join('\n')
  // The key of git-crypt(1), which reads it there. LFS finds the objects of the repository as git finds its own.
  const key =
    (await kindOf(join(common, 'git-crypt'))) === 'folder'
      ? ([['show', join(common, 'git-crypt'), join(at, 'git-crypt')]] as const)
      : []
  // What the repository borrows itself is shown beside it: its path may lead elsewhere behind the wall.
  const borrowed = (await lendersOf(spec, common)).map((path, number) => ({ path, seenAt: `${lender}.${number}` }))
  const lent = [join(lender, 'objects'), ...borrowed.map(({ seenAt }) => seenAt)].map(path => `${path}\n`).join('')
  const none: Mount[] = borrowed.length === 0 ? [] : [['show', await note(spec.data, ''), join(lender, alternates)]]
  return [
    ...asIs,
    ['show', await real(common), lender],
    ...none,
    ...(await Promise.all(
      borrowed.map(async ({ path, seenAt }): Promise<Mount> => ['show', await real(path), seenAt]),
    )),
    ['bind', await real(own), at],
    ['show', await note(spec.data, lent), join(at, alternates)],
    [
      'show',
      await note(spec.data, ownConfig(common, lender, form && { ...form, attributesAt: join(at, SHARED_ATTRIBUTES) })),
      join(at, 'config'),
    ],
    ['show', await note(spec.data, form?.attributes ?? ''), join(at, SHARED_ATTRIBUTES)],
    ['show', await note(spec.data, ignored), join(at, excludes)],
    ['show', await note(spec.data, readPlain(join(common, attributes)) ?? ''), join(at, attributes)],
    ...key,
    ['show', await note(spec.data, `gitdir: ${at}\n`), join(spec.workspace, path, '.git')],
  ]
}
