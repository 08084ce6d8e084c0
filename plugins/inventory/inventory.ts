import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { refuse, Refusal, type Caller, type Context, type Host } from '../../sdk/index.js'
import { accessViewFor } from '../../sdk/node/access/asked-reach.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import {
  assertInventory,
  CONFIG_NAME,
  entriesIn,
  INTENT,
  secretsOf,
  usersOf,
  type DeployEntry,
} from '../../sdk/node/deploy/entries.js'
import { withEntry, withoutEntry } from '../../sdk/node/deploy/edits.js'
import { openFile, openPath } from '../../sdk/node/files/open-path.js'
import { record } from '../../sdk/node/record/record.js'
import type { RepoFileState } from '../git/contract.js'
import type { InventoryEntry, InventoryList, InventoryListed } from './contract.js'

/** The workspace path of the configuration. */
export const CONFIG_FILE = `${INTENT}/${CONFIG_NAME}`

const LARGEST = 1024 * 1024
const MOST_OPTIONS = 50
const NOT_READY: InventoryList = { ready: false, dirty: false, entries: [] }

type Op = 'added' | 'replaced' | 'removed'
type InventoryHost = Pick<Host, 'call' | 'serves' | 'place' | 'log' | 'signal'>

/** What a caller's change comes to; undefined: to nothing. */
type Plan = (
  entries: readonly DeployEntry[],
) => { op: Op; entry: DeployEntry; edit: (text: string | undefined) => string } | undefined

/** The configuration as it is on disk; no text: no file. */
interface ReadFile {
  readonly state: RepoFileState
  readonly text?: string
}

const sha256 = (text: string | undefined) =>
  text === undefined ? ('absent' as const) : createHash('sha256').update(text).digest('hex')

/** Reads and writes the entries of the deployment configuration. */
export class Inventory {
  readonly #host: InventoryHost
  readonly #writes = new KeyedMutex()

  constructor(host: InventoryHost) {
    this.#host = host
  }

  async list(context: Context): Promise<InventoryList> {
    const read = await this.#read(context)
    return read ? this.#listed(read, context.caller) : NOT_READY
  }

  /** Refuses an entry that the inventory could not have. */
  async check(entry: InventoryEntry, context: Context): Promise<void> {
    const { entries } = await this.list(context)
    assertInventory(withNow(entries.map(plainEntry), entry))
  }

  async put(entry: InventoryEntry, context: Context): Promise<InventoryList> {
    const most = Object.keys(entry.values).length
    if (most > MOST_OPTIONS)
      refuse('invalid', `values: expected at most ${MOST_OPTIONS} options, found ${most}`, {
        errors: [{ path: 'values', expected: `at most ${MOST_OPTIONS} options` }],
      })
    return this.#change(context, entries => {
      const known = entries.some(({ name }) => name === entry.name)
      assertInventory(withNow(entries, entry))
      return { op: known ? 'replaced' : 'added', entry, edit: text => withEntry(text, entry) }
    })
  }

  async remove(name: string, context: Context): Promise<InventoryList> {
    return this.#change(context, entries => {
      const entry = entries.find(each => each.name === name)
      if (!entry) return undefined
      const users = usersOf(entries, name)
      if (users.length > 0)
        refuse('conflict', `${name} is named by ${users.join(', ')}: remove or change them first`, {
          fields: { usedBy: users },
        })
      return { op: 'removed', entry, edit: text => withoutEntry(text ?? '', name) }
    })
  }

  async #change(context: Context, plan: Plan): Promise<InventoryList> {
    const changed = await this.#writes.with('file', () => this.#write(context, plan), context.signal)
    if (changed) await this.#announce(changed, context)
    return this.list(context)
  }

  async #write(context: Context, plan: Plan): Promise<{ op: Op; entry: DeployEntry; commit: string } | undefined> {
    const { state, text } =
      (await this.#read(context, true))
      ?? refuse('conflict', `there is no repository ${INTENT}: connect the card DevOps, which makes it`)
    const { dirty, operation } = state
    if (operation) refuse('conflict', `${INTENT} is in the middle of a ${operation}: continue or abort it first`)
    if (dirty) refuse('conflict', `${CONFIG_FILE} has uncommitted edits: commit or undo them first`)
    const change = plan(entriesIn(text ?? ''))
    if (!change) return undefined
    const { op, entry, edit } = change
    const content = edit(text)
    if (content === text) return undefined
    const size = Buffer.byteLength(content)
    if (size > LARGEST) refuse('too-large', `${CONFIG_FILE}: expected at most ${LARGEST} bytes, found ${size}`)
    const verb = { added: 'Add', replaced: 'Change', removed: 'Remove' }[op]
    const file = { repo: INTENT, path: CONFIG_NAME, content, baseHash: sha256(text) }
    const message = `${verb} ${entry.kind} ${entry.name}`
    const { commit } = await this.#host.call('git.commitFile', { ...file, message }, { as: context })
    return { op, entry, commit }
  }

  async #announce(
    { op, entry, commit }: { readonly op: Op; readonly entry: DeployEntry; readonly commit: string },
    context: Context,
  ): Promise<void> {
    await this.changed(entry.name)
    const extra = { name: entry.name, kind: entry.kind, op, commit }
    await record(this.#host, { type: 'inventory.changed', outcome: 'ok', extra }, context)
  }

  /** Notifies clients that the inventory, or one entry, changed. */
  async changed(key?: string): Promise<void> {
    await this.#host
      .call('kernel.events.publish', { domain: 'inventory', within: [CONFIG_FILE], ...(key !== undefined && { key }) })
      .catch(error => this.#host.log.warn('publishing a change failed', { error: String(error) }))
  }

  /** Reads the file as the caller may; undefined: there is no repository, or the caller's areas do not hold it. */
  async #read(context: Context, needed = false): Promise<ReadFile | undefined> {
    const view = await accessViewFor(this.#host, context.caller)
    if (!(await view.sees(CONFIG_FILE))) {
      if (needed) refuse('not-found', `nothing in the workspace is named ${CONFIG_FILE}`)
      return undefined
    }
    const file = { repo: INTENT, path: CONFIG_NAME }
    const state = await this.#host.call('git.fileState', file, { as: context }).catch((error: unknown) => {
      if (error instanceof Refusal && error.reason === 'not-found') return undefined
      throw error
    })
    if (!state) return undefined
    const tree = { root: this.#host.place.workspace, reach: view.reach, readsGit: false }
    await using found = await openPath(tree, CONFIG_FILE)
    if (!found) return { state }
    if (!found.stats.isFile()) refuse('unprocessable', `${CONFIG_FILE} is no plain file`)
    if (found.stats.size > LARGEST)
      refuse('unprocessable', `${CONFIG_FILE}: expected at most ${LARGEST} bytes, found ${found.stats.size}`)
    await using handle = await openFile(found, CONFIG_FILE)
    const bytes = await handle.readFile()
    if (!isUtf8(bytes)) refuse('unprocessable', `${CONFIG_FILE}: expected a text in UTF-8`)
    return { state, text: bytes.toString() }
  }

  async #listed({ state, text }: ReadFile, caller: Caller): Promise<InventoryList> {
    const entries = entriesIn(text ?? '')
    const shows = caller.kind !== 'token'
    const names = shows ? await this.#stored() : new Set<string>()
    return {
      ready: true,
      file: CONFIG_FILE,
      ...(state.commit !== undefined && { commit: state.commit }),
      dirty: state.dirty,
      entries: entries.map((entry): InventoryListed => {
        const secrets = secretsOf(entry).map(({ option, key }) => ({ option, key, set: names.has(key) }))
        // A secret that was written into the file by hand is not shown.
        const values = { ...entry.values }
        for (const { option } of secrets) delete values[option]
        return { ...entry, values, secrets: shows ? secrets : [], usedBy: usersOf(entries, entry.name) }
      }),
    }
  }

  async #stored(): Promise<ReadonlySet<string>> {
    if (!(await this.#host.serves('secrets.names'))) return new Set()
    return new Set((await this.#host.call('secrets.names')).names)
  }
}

/** An entry of a list as the file has it. */
const plainEntry = ({ secrets: _, usedBy: __, ...entry }: InventoryListed): DeployEntry => entry

const withNow = (entries: readonly DeployEntry[], entry: InventoryEntry): DeployEntry[] => {
  const index = entries.findIndex(({ name }) => name === entry.name)
  return index < 0 ? [...entries, entry] : entries.with(index, entry)
}
