import { randomBytes } from 'node:crypto'
import { closeSync, openSync, writeSync } from 'node:fs'
import { lstat, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInflate } from 'node:zlib'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { FORGIVEN, git, GitFailure } from '../../../sdk/node/programs/git.js'
import { dropOwnObjects } from './gitdir.js'
import { inTree, type Tree } from './tree.js'

/** The commits of a branch to import into a repository that does not have them. */
export interface Import {
  readonly tree: Tree
  readonly common: string
  readonly gitdir: string
  /** The commit to import, and commits that the repository has with all their ancestors. */
  readonly tip: string
  readonly has: readonly string[]
}

/** A branch that git refuses to import; the message is git's. */
export class MalformedBranch extends Error {}

const MOST_BYTES = 8 * 1024 * 1024 * 1024
/** The number of received objects up to which git itself stores them as loose files. */
const FEW = 100
const FEW_BYTES = 64 * 1024 * 1024
const HEADER = 12
/** Larger objects are streamed, not held in memory. */
const STREAMED = ['-c', 'core.bigFileThreshold=16m']
const STRICT = `--strict=${FORGIVEN.map(fault => `${fault}=ignore`).join(',')}`
const OBJECT = /^[0-9a-f]{38}(?:[0-9a-f]{24})?$/

/**
 * Imports the objects of a branch into its repository, all or none; returns their ids.
 *
 * Git packs them behind the wall of the copy, and checks them strictly in a separate folder, as for a push. Only
 * checked objects are moved to the repository; git itself removes the folder after a kill.
 */
export const importObjects = async (what: Import): Promise<string[]> => {
  const { common, gitdir, tip } = what
  const apart = join(common, 'objects', `tmp_objdir-incoming-${randomBytes(6).toString('hex')}`)
  await mkdir(join(apart, 'pack'), { recursive: true })
  try {
    const pack = join(apart, 'pack', 'incoming.pack')
    await packInto(what, pack)
    const { objects, bytes } = await sizeOf(pack)
    if (objects === 0) {
      await checkCommit(common, tip)
      return []
    }
    const few = objects < FEW && bytes < FEW_BYTES
    const ids = few ? await unpack(common, apart, pack) : await index(common, apart, pack)
    // Git does not unpack objects that the repository already has, such as commits of a deleted conversation.
    await (few && ids.includes(tip)
      ? checkLoose(join(apart, tip.slice(0, 2), tip.slice(2)))
      : checkCommit(common, tip, apart))
    failpoint('agent.import.checked')
    await take(apart, join(common, 'objects'))
    failpoint('agent.import.taken')
    await dropOwnObjects(gitdir, common, ids)
    return ids
  } catch (error) {
    throw error instanceof GitFailure ? new MalformedBranch(wordsOf(error), { cause: error }) : error
  } finally {
    await rm(apart, { recursive: true, force: true })
  }
}

/** The last line of git's output that names the reason. */
const wordsOf = ({ stderr, message }: GitFailure): string =>
  (
    stderr
      .trim()
      .split('\n')
      .find(line => /^(error|fatal):/.test(line)) ?? message
  )
    .replace(/^(error|fatal): /, '')
    .slice(0, 300)

const packInto = async ({ tree, tip, has }: Import, path: string): Promise<void> => {
  const file = openSync(path, 'wx', 0o444)
  const stop = new AbortController()
  let bytes = 0
  try {
    await inTree(tree, [...STREAMED, 'pack-objects', '--revs', '--stdout', '-q', '--delta-base-offset'], {
      input: [`${tip}^{commit}`, ...has.map(commit => `^${commit}`), ''].join('\n'),
      signal: stop.signal,
      // The end of a turn waits for it.
      priority: 'own',
      to: piece => {
        bytes += piece.length
        if (bytes > MOST_BYTES) stop.abort(new MalformedBranch(`it has more than ${MOST_BYTES} bytes`))
        else writeSync(file, piece)
      },
    })
  } finally {
    closeSync(file)
  }
}

/** The number of objects in a pack by its header (gitformat-pack(5)), and its size. */
const sizeOf = async (pack: string): Promise<{ objects: number; bytes: number }> => {
  const file = await open(pack, 'r')
  try {
    const header = Buffer.alloc(HEADER)
    await file.read(header, 0, HEADER, 0)
    return { objects: header.readUInt32BE(8), bytes: (await file.stat()).size }
  } finally {
    await file.close()
  }
}

const quoted = (path: string): string => `"${path.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`

const unpack = async (common: string, apart: string, pack: string): Promise<string[]> => {
  await git(common, ['unpack-objects', '-q', STRICT], {
    env: {
      GIT_DIR: common,
      GIT_OBJECT_DIRECTORY: apart,
      GIT_ALTERNATE_OBJECT_DIRECTORIES: quoted(join(common, 'objects')),
    },
    input: await readFile(pack),
  })
  await rm(pack)
  return (await looseIn(apart)).map(([folder, name]) => folder + name)
}

const index = async (common: string, apart: string, pack: string): Promise<string[]> => {
  const { text } = await git(common, [...STREAMED, 'index-pack', STRICT, pack], { env: { GIT_DIR: common } })
  const name = `pack-${text.trim()}`
  for (const kind of ['pack', 'rev', 'idx']) {
    await rename(join(apart, 'pack', `incoming.${kind}`), join(apart, 'pack', `${name}.${kind}`)).catch(error =>
      kind === 'rev' ? undefined : Promise.reject(error),
    )
  }
  return idsIn(await readFile(join(apart, 'pack', `${name}.idx`)), text.trim().length / 2)
}

/** The object ids in the index of a pack (gitformat-pack(5), version 2). */
const idsIn = (index: Buffer, width: number): string[] => {
  const start = 8 + 256 * 4
  const count = index.readUInt32BE(start - 4)
  return Array.from({ length: count }, (_, at) => index.toString('hex', start + at * width, start + (at + 1) * width))
}

const looseIn = async (objects: string): Promise<[folder: string, name: string][]> => {
  const folders = (await readdir(objects)).filter(name => /^[0-9a-f]{2}$/.test(name))
  const each = await Promise.all(
    folders.map(async folder =>
      (await readdir(join(objects, folder)))
        .filter(name => OBJECT.test(name))
        .map(name => [folder, name] as [string, string]),
    ),
  )
  return each.flat()
}

/** Refuses a tip that is not a commit: a branch must point to a commit. */
const checkCommit = async (common: string, tip: string, apart?: string): Promise<void> => {
  const env = { GIT_DIR: common, ...(apart && { GIT_ALTERNATE_OBJECT_DIRECTORIES: quoted(apart) }) }
  const { text } = await git(common, ['cat-file', '-t', tip], { env })
  if (text.trim() !== 'commit')
    throw new MalformedBranch(`the tip ${tip.slice(0, 12)} is a ${text.trim()}, not a commit`)
}

/** As `checkCommit`, for a loose object, which begins with its type. */
const checkLoose = async (path: string): Promise<void> => {
  const inflated = createInflate()
  inflated.end(await readFile(path))
  for await (const piece of inflated) {
    if (!(piece as Buffer).subarray(0, 7).equals(Buffer.from('commit ')))
      throw new MalformedBranch('the tip is not a commit')
    return
  }
}

/** Moves checked objects into a repository: a pack before its index, by which git finds it. */
const take = async (apart: string, objects: string): Promise<void> => {
  for (const [folder, name] of await looseIn(apart)) {
    await mkdir(join(objects, folder), { recursive: true })
    await takeFile(join(apart, folder, name), join(objects, folder, name))
  }
  const packs = (await readdir(join(apart, 'pack'))).filter(name => name.startsWith('pack-'))
  const order = ['pack', 'rev', 'idx']
  await mkdir(join(objects, 'pack'), { recursive: true })
  for (const name of packs.sort(
    (one, other) => order.indexOf(one.split('.')[1]!) - order.indexOf(other.split('.')[1]!),
  )) {
    await takeFile(join(apart, 'pack', name), join(objects, 'pack', name))
  }
}

const takeFile = async (from: string, to: string): Promise<void> => {
  // The same name is the same content.
  if (!(await lstat(to).catch(() => undefined))) await rename(from, to)
}

const LINE = /^([0-9a-f]{40,64}) ([0-9a-f]{40,64}) ([^\0\n]*)$/
const ENTRY = /^[^\t<>]*<[^\t<>]*> \d{1,20} [+-]\d{4}\t/

/**
 * The reflog lines for a branch's move from one commit to another, from the copy's reflog.
 *
 * Only consecutive lines whose commits the repository has are used: a reflog must not name missing commits.
 */
export const logOf = (own: string, from: string | undefined, to: string, ids: readonly string[]): string => {
  const lines = own.split('\n').flatMap(line => {
    const [, , commit, rest] = LINE.exec(line) ?? []
    return commit !== undefined && rest !== undefined && ENTRY.test(rest) ? [{ commit, rest }] : []
  })
  const begins = lines.findLastIndex(({ commit }) => commit === from)
  const there = new Set([...ids, to])
  const told = lines.slice(begins + 1).filter(({ commit }) => there.has(commit))
  if (told.at(-1)?.commit !== to) {
    const seconds = Math.floor(Date.now() / 1000)
    told.push({
      commit: to,
      rest: `Sandbox agent <agent@sandbox.local> ${seconds} +0000\tsandbox: import the work of the private copy`,
    })
  }
  let last = from ?? '0'.repeat(to.length)
  return told
    .map(({ commit, rest }) => {
      const line = `${last} ${commit} ${rest}\n`
      last = commit
      return line
    })
    .join('')
}
