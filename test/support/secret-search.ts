import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { gunzipSync, inflateSync } from 'node:zlib'
import type { Calls } from '../../kernel/calls.js'
import { VAULTED } from '../../sdk/vaulted.js'
import { openVault, readVault } from '../../plugins/secrets/vault/vault.js'

/** Shorter values are not masked, since they would match everywhere. */
const LEAST = 8
/** A test of a thousand values takes long enough: this many stand for them. */
const MOST_VALUES = 30
const LOOK_MS = 50

/** What the daemons of one data folder were given, and where else than in files they may show it. */
interface Watched {
  readonly workspace: string
  readonly given: Set<string>
  /** What they wrote to their standard output and error, or logged. */
  readonly outputs: (() => string)[]
  /** The messages of calls that failed. */
  readonly errors: string[]
  /** The arguments of the programs that they started. */
  readonly args: Set<string>
  /** Where the test means values to be in the clear. */
  readonly meant: Set<string>
}
const watched = new Map<string, Watched>()

const watchedAt = (data: string, workspace: string): Watched => {
  const there = watched.get(data)
  if (there) return there
  const made = {
    workspace,
    given: new Set<string>(),
    outputs: [],
    errors: [],
    args: new Set<string>(),
    meant: new Set<string>(),
  }
  watched.set(data, made)
  return made
}

/** Lets a place of a daemon show values, as the search names it; `_why` is for the reader of the test. */
export const meantInClear = ({ data }: { data: string }, place: string, _why: string): void =>
  void watched.get(data)?.meant.add(place)

/** Names further values that a daemon holds and must not show, such as those that a server gave it. */
export const mustStaySecret = ({ data }: { data: string }, values: readonly string[]): void => {
  for (const value of values) if (value.length >= LEAST) watched.get(data)?.given.add(value)
}

/** Which values a call gives to the sandbox, or asks a store in place of it for. */
const GIVEN: { readonly [call: string]: (input: Fields, output?: Fields) => unknown[] } = {
  'kernel.redact.values': ({ values = [] }) => values.map(({ value }) => value),
  'POST /secrets': ({ value }) => [value],
  'POST /secrets/store': ({ passphrase }) => [passphrase],
  'secrets.put': ({ value }) => [value],
  'secrets.values': (_, output) => output?.values?.map(({ value }) => value) ?? [],
  'secrets.get': (_, output) => [output?.value],
  'capabilities.put': ({ secrets = {} }) => Object.values(secrets),
  'POST /accounts/{provider}/login/finish': ({ key, code }) => [key, code],
  'accounts.lease': (_, output) => [output?.value],
  'accounts.renew': (_, output) => [output?.value],
}
interface Fields {
  readonly value?: string
  readonly passphrase?: string
  readonly key?: string
  readonly code?: string
  readonly values?: readonly { readonly value: string }[]
  readonly secrets?: { readonly [field: string]: string }
}

/** Notes every value that a daemon of this process is given, by whatever way, and the messages of calls that fail. */
export const watchCalls = (calls: Calls, place: { data: string; workspace: string }, logged: string[]): void => {
  const { given, errors, args, outputs } = watchedAt(place.data, place.workspace)
  outputs.push(() => logged.join('\n'))
  const answer = calls.answer.bind(calls)
  const note = (values: unknown[]) => {
    for (const value of values)
      if (typeof value === 'string' && value.length >= LEAST && value !== VAULTED) given.add(value)
    if (given.size > 0) watchArguments(process.pid, args)
  }
  calls.answer = async (call, input, context, by) => {
    const noted = GIVEN[call]
    if (noted) note(noted(input as Fields))
    try {
      const output = await answer(call, input, context, by)
      if (noted) note(noted(input as Fields, output as Fields))
      return output
    } catch (error) {
      if (given.size > 0) errors.push(`${call}: ${(error as Error).message} ${JSON.stringify(error)}`)
      throw error
    }
  }
}

/** Watches a daemon in a process of its own; what it was given is in its vault. */
export const watchProcess = (pid: number, place: { data: string; workspace: string }, output: () => string): void => {
  const { args, outputs } = watchedAt(place.data, place.workspace)
  outputs.push(output)
  watchArguments(pid, args)
}

const looking = new Map<number, Set<Set<string>>>()

/** Collects the arguments of the programs that a process starts, until it ends. */
const watchArguments = (pid: number, into: Set<string>): void => {
  const known = looking.get(pid)
  if (known) return void known.add(into)
  const sets = new Set([into])
  looking.set(pid, sets)
  let before = new Set<string>()
  const look = () => {
    const children = textOf(`/proc/${pid}/task/${pid}/children`)
    if (children === undefined) return end()
    const now = new Set(children.split(' ').filter(Boolean))
    for (const child of now) {
      if (before.has(child)) continue
      const line = textOf(`/proc/${child}/cmdline`)
      // Until its program runs, it has the arguments of its parent, or none.
      if (!line || line === textOf(`/proc/${pid}/cmdline`)) now.delete(child)
      else for (const set of sets) set.add(line)
    }
    before = now
  }
  const timer = setInterval(look, LOOK_MS).unref()
  const end = () => {
    clearInterval(timer)
    looking.delete(pid)
  }
}

const textOf = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // The process has ended meanwhile.
    return undefined
  }
}

/** The texts that show a value: itself, as JSON, percent-encoded, in hexadecimal, in base64 at any offset. */
export const formsOf = (value: string): string[] => [
  ...new Set([
    value,
    JSON.stringify(value).slice(1, -1),
    encodeURIComponent(value.toWellFormed()),
    Buffer.from(value).toString('hex'),
    ...[0, 1, 2].map(skip =>
      Buffer.from(' '.repeat(skip) + value)
        .toString('base64')
        .slice(skip ? 4 : 0, -4),
    ),
  ]),
]

/** Fails if a stored value is in the clear in what the daemons below a folder wrote; called before it is removed. */
export const searchSecrets = (folder: string): void => {
  const found = shownBelow(folder)
  for (const data of watched.keys()) if (isBelow(folder, data)) watched.delete(data)
  if (found.length > 0) throw new Error(`stored values are in the clear in ${found.join(', ')}`)
}

const isBelow = (folder: string, data: string): boolean => data === folder || data.startsWith(folder + sep)

/** The places that show a value given to a daemon whose data is below a folder. */
export const shownBelow = (folder: string): string[] =>
  [...watched].flatMap(([data, each]) => (isBelow(folder, data) ? shownBy(data, each) : []))

const shownBy = (data: string, { workspace, given, outputs, errors, args, meant }: Watched): string[] => {
  const vault = vaultOf(data)
  const values = [...new Set([...given, ...vault.values])].filter(value => value.length >= LEAST)
  if (values.length === 0) return []
  const step = Math.ceil(values.length / MOST_VALUES)
  const forms = values.filter((_, at) => at % step === 0).flatMap(formsOf)
  const needles = forms.filter(form => form.length >= LEAST).map(form => Buffer.from(form))
  const shows = (bytes: Buffer) => needles.some(needle => bytes.includes(needle))
  const texts = { output: outputs.map(output => output()), arguments: [...args], errors }
  const found = [
    ...Object.entries(texts).flatMap(([place, all]) => (shows(Buffer.from(all.join('\n'))) ? [place] : [])),
    ...Object.entries({ 'data folder': data, workspace }).flatMap(([place, below]) =>
      filesIn(below).flatMap(file => (shows(contentOf(file)) ? [`${place}: ${relative(below, file)}`] : [])),
    ),
  ]
  return found.filter(place => place !== `workspace: ${vault.dotenv}` && !meant.has(place))
}

/** The values of a vault whose key is beside it, also those that were replaced, and the `.env` file it stands for. */
const vaultOf = (data: string): { values: string[]; dotenv?: string } => {
  const file = join(data, 'secrets/secrets.vault')
  if (!existsSync(file)) return { values: [] }
  const vault = readVault(readFileSync(file))
  const { key, dotenv } = vault.head
  const at = join(data, `secrets/keys/${key}.key`)
  const { secrets, replaced } = existsSync(at) ? openVault(vault, readFileSync(at)) : { secrets: [], replaced: [] }
  return { values: [...secrets, ...replaced].map(({ value }) => value), ...(dotenv !== undefined && { dotenv }) }
}

/** All files below a folder. */
export const filesIn = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter(entry => entry.isFile())
        .map(({ parentPath, name }) => join(parentPath, name))
    : []

/**
 * The bytes of a file, unpacked if it is a compressed stream, such as an object or a pack of git, or a backup; none of
 * one that a running daemon has removed meanwhile.
 */
export const contentOf = (file: string): Buffer => {
  if (file.endsWith('.pack')) return objectsBeside(file)
  const bytes = bytesOf(file)
  try {
    if (bytes[0] === 0x78) return inflateSync(bytes)
    if (bytes[0] === 0x1f && bytes[1] === 0x8b) return gunzipSync(bytes)
  } catch {
    // It only begins like one.
  }
  return bytes
}

const bytesOf = (file: string): Buffer => {
  try {
    return readFileSync(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

/** Every object of the repository that a pack is in. */
const objectsBeside = (pack: string): Buffer => {
  const repository = dirname(dirname(dirname(pack)))
  const args = ['--git-dir', repository, 'cat-file', '--batch-all-objects', '--batch', '--unordered', '--buffer']
  const { status, stdout, stderr } = spawnSync('git', args, { maxBuffer: 1024 ** 3 })
  if (status !== 0) throw new Error(`the objects beside ${pack} cannot be read: ${String(stderr)}`)
  return stdout
}
