import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, type Host, type Place } from '../../../sdk/index.js'
import { contains, segmentsOf } from '../../../sdk/node/files/paths.js'
import { missingProgram, ownProgram, run } from '../../../sdk/node/programs/run.js'
import { foldersWithGit } from '../../../sdk/node/repositories/folders-with-git.js'
import { settingsCopy } from '../../../sdk/node/wall/settings-copy.js'
import { systemMounts } from '../../../sdk/node/wall/system.js'
import { tightlyWalled } from '../../../sdk/node/wall/tight.js'
import { textOrBytes } from '../../../sdk/node/extension/bytes.js'
import type { ExtensionRecords, RunnableExtension } from '../runtime.js'
import { deny } from '../../../sdk/node/extension/denied.js'
import type { ManifestEntries } from '../../../sdk/node/extension/entries.js'
import type { HostHandlers } from './operations.js'
import { INSIDE, UNCONTAINED, type ProcessPlace } from './process/start-process.js'

/** The dependencies of running programs of a backend. */
export interface ProgramDeps {
  readonly host: Pick<Host, 'call' | 'serves'>
  readonly place: Pick<Place, 'workspace' | 'data'>
  readonly extension: RunnableExtension
  readonly entries: ManifestEntries
  readonly records: Pick<ExtensionRecords, 'used'>
  readonly wall: ProcessPlace['wall']
}

const GIB = 1024 ** 3
const DEFAULT_MS = 60_000
const MOST_OUTPUT = 3 * 1024 * 1024
/** The paths of the workspace's folders for the program. */
const WORKSPACE = '/workspace'
const LIMITS = { data: 2 * GIB, openFiles: 1024, fileSize: GIB }
/** Variables that decide what a program loads. */
const CLOSED = /^(?:LD_.*|PATH|HOME|NODE_OPTIONS|BASH_ENV|ENV|SANDBOX_.*)$/i

interface Shown {
  readonly from: string
  readonly to: string
}

/** The operation that runs a program, behind a wall with the folders of the `fs:` entries and no network. */
export const programOperations = (deps: ProgramDeps): Pick<HostHandlers, 'processes.run'> => ({
  'processes.run': async ({ program, args, cwd, env = {}, input, timeoutMs = DEFAULT_MS }, signal) => {
    const { entries, extension, place, records } = deps
    if (!entries.programs.has(program)) deny(`run:${program}`)
    const closed = Object.keys(env).find(name => CLOSED.test(name) || !/^[A-Za-z_][A-Za-z0-9_]{0,99}$/.test(name))
    if (closed !== undefined) refuse('invalid', `env: the variable ${closed.slice(0, 100)} cannot be set`)
    await assertAllowed(deps, [program, ...args])
    const path = (await ownProgram(program)) ?? (await missingProgram(program))
    const [read, write] = [
      await folders(place.workspace, entries, 'read'),
      await folders(place.workspace, entries, 'write'),
    ]
    const written = new Set(write.map(({ to }) => to))
    const shown = [...read.filter(({ to }) => !written.has(to)), ...write]
    const command = await tightlyWalled(
      {
        data: place.data,
        program: [...systemMounts(await settingsCopy(place.data)), ['empty', '', '/tmp']],
        read: read.filter(({ to }) => !written.has(to)),
        write: [...write, { from: extension.dataDir, to: INSIDE.dataDir }],
        hide: await gitFolders(place.workspace, shown),
        cwd: cwd === undefined ? INSIDE.dataDir : folderOf(cwd, shown),
        env: { LANG: 'C.UTF-8', TZ: 'UTC', ...env, PATH: '/usr/local/bin:/usr/bin:/bin', HOME: INSIDE.dataDir },
        limits: LIMITS,
      },
      path,
      args,
      deps.wall,
    )
    if (!command) return refuse('unprocessable', UNCONTAINED)
    records.used(extension.id, `run:${program}`)
    const {
      code,
      signal: by,
      stdout,
      stderr,
      truncated,
      timedOut,
    } = await run(command.program, command.args, {
      cwd: '/',
      env: command.env,
      ...(input !== undefined && { input: textOrBytes('input', input) }),
      signal,
      timeoutMs,
      walled: true,
      maxBytes: MOST_OUTPUT,
    })
    const ended = by ?? (timedOut ? 'SIGKILL' : undefined)
    return {
      ...(ended === undefined ? { code } : { signal: ended }),
      stdout,
      stderr: Buffer.from(stderr),
      truncated,
    }
  },
})

const MOST_LINE = 20_000
const PLAIN = /^[\w@%+=:,./-]+$/
const quoted = (word: string): string => (PLAIN.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)

/** Refuses a program that the safety policy holds or denies: nobody watches an extension. */
const assertAllowed = async ({ host, extension: { id } }: ProgramDeps, words: readonly string[]): Promise<void> => {
  if (!(await host.serves('safety.decide'))) return
  const text = words.map(quoted).join(' ').slice(0, MOST_LINE).toWellFormed()
  const subject = { kind: 'command' as const, text }
  const { verdict, message, reason } = await host.call('safety.decide', { subject, context: { unattended: true } })
  if (verdict !== 'allow')
    refuse('forbidden', `the safety policy does not let ${id} run ${words[0]}: ${message ?? reason}`)
}

/** The folders that entries of the form `<folder>/**` name, as the program sees them. */
const folders = async (workspace: string, entries: ManifestEntries, mode: 'read' | 'write'): Promise<Shown[]> => {
  const named = entries.globs(mode).flatMap(glob => /^([^*]+)\/\*\*$/.exec(glob)?.[1] ?? [])
  const found = await Promise.all(
    [...new Set(named)].map(async path => {
      const from = join(workspace, ...segmentsOf(path))
      const real = await realpath(from).catch(() => undefined)
      return real === from && entries.holdsBelow(mode, path) ? [{ from, to: join(WORKSPACE, path) }] : []
    }),
  )
  return found.flat().sort((one, other) => one.to.length - other.to.length)
}

const folderOf = (cwd: string, shown: readonly Shown[]): string => {
  const at = join(WORKSPACE, ...(cwd === '.' ? [] : segmentsOf(cwd)))
  return shown.some(({ to }) => contains(to, at)) ? at : deny(`fs:read:${cwd}/**`)
}

/** The `.git` entries in these folders, as the program would see them. */
const gitFolders = async (workspace: string, shown: readonly Shown[]): Promise<string[]> => {
  const found: string[] = []
  for (const { from, to } of shown) for await (const path of foldersWithGit(from)) found.push(join(to, path, '.git'))
  return found
}
