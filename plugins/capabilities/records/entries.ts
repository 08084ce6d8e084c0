import { refuse, type Log, type Store } from '../../../sdk/index.js'
import { orderedHash } from '../../../sdk/node/files/ordered-hash.js'
import { VAULTED } from '../../../sdk/vaulted.js'
import { CAPABILITIES_FILE, type CapabilityFile, type FileEntry } from './capability-file.js'
import type { CapabilityStatus, ShownConfig } from './contract.js'
import { withoutCard, type OfferedCards } from '../cards/offered-cards.js'
import type { Kinds } from '../kinds/kinds.js'
import { failingStatus, type KindHandler, type OpenEntry } from './kinds.js'
import type { Vault } from './vault.js'

/** A connection as it is recorded, without values of its secrets. */
export interface RecordedEntry {
  readonly id: string
  readonly kind: string
  readonly label: string
  readonly config: ShownConfig
  /** The names of its secret fields that hold a value. */
  readonly secrets: readonly string[]
  /** The names of its secret fields whose value stands in the file: it waits there for a call that stores it. */
  readonly plain: readonly string[]
  /** Who serves its kind, where that is this group. */
  readonly handler?: KindHandler
}

/** A connection with its values, or why it cannot be used. */
export interface OpenedEntry {
  readonly entry: OpenEntry
  readonly problem?: CapabilityStatus
}

export interface EntriesDeps {
  readonly file: CapabilityFile
  readonly vault: Vault
  readonly store: Pick<Store, 'get' | 'set' | 'delete'>
  readonly kinds: Pick<Kinds, 'of'>
  readonly cards: Pick<OfferedCards, 'refresh' | 'isBrought'>
  readonly log: Log
}

const SAVED = 'saved/'
/** The fields that name another connection, of the kinds that have them. */
const LINKS = ['exit', 'identity', 'mailbox']
const LINKED: ReadonlySet<string> = new Set(['browser', 'identity'])
const FILE = CAPABILITIES_FILE

/** What is connected, as the file and the store of secrets have it. */
export class Entries {
  readonly #deps: EntriesDeps
  #told = ''

  constructor(deps: EntriesDeps) {
    this.#deps = deps
  }

  async all(): Promise<RecordedEntry[]> {
    const { entries, problems, wrong } = await this.#deps.file.read()
    this.#tell([...problems, ...(wrong === undefined ? [] : [wrong])])
    const handlers = await this.#handlersOf(entries)
    return [...entries].map(([id, entry]) => entryOf(id, entry, handlers.get(entry.kind)))
  }

  async #handlersOf(entries: ReadonlyMap<string, FileEntry>): Promise<ReadonlyMap<string, KindHandler>> {
    const { cards } = this.#deps
    if ([...entries.values()].some(({ kind, config }) => cards.isBrought(kind, config))) await cards.refresh()
    return (await this.#deps.kinds.of([...entries.values()].map(({ kind }) => kind))).handlers
  }

  async find(id: string): Promise<RecordedEntry | undefined> {
    return (await this.all()).find(entry => entry.id === id)
  }

  /** The connection of that id. 404: there is none. */
  async get(id: string): Promise<RecordedEntry> {
    return (await this.find(id)) ?? refuse('not-found', `there is no connection ${JSON.stringify(id.slice(0, 60))}`)
  }

  /** Why entries of the file, or the values in them, are not used. */
  async problems(): Promise<string[]> {
    const { entries, problems, wrong } = await this.#deps.file.read()
    const handlers = await this.#handlersOf(entries)
    const plain = [...entries].flatMap(([id, entry]) =>
      plainFields(entry, handlers.get(entry.kind)).map(field => `${id}: ${waiting(id, field)}`),
    )
    return wrong === undefined ? [...problems, ...plain] : [wrong]
  }

  /** The connections of the file that no maintainer saved as they are, each as a sentence. */
  async unaccepted(): Promise<string[]> {
    const found = await Promise.all(
      (await this.all()).map(async entry =>
        !(await this.isAccepted(entry))
          ? [
              `${entry.id}: it came with the code or was changed by hand: it is used once it is saved with `
                + savedWith(entry),
            ]
          : [],
      ),
    )
    return found.flat()
  }

  /**
   * The values of a connection's secrets, unless no maintainer saved what it starts and where they go: the file may
   * have come with the code.
   */
  async open(recorded: RecordedEntry): Promise<OpenedEntry> {
    const { id, config, secrets: names, plain, handler } = recorded
    if (handler?.unfold && !handler.unfold({ id, config, secrets: {} }))
      return { entry: { id, config, secrets: {} }, problem: withoutCard() }
    const mark = handler?.mark?.(config)
    const unaccepted = {
      entry: { id, config, secrets: {} },
      problem: failingStatus(
        `its entry in ${FILE} came with the code or was changed by hand: `
          + `save it with ${savedWith(recorded)} to use it`,
        'unauthorized',
      ),
    }
    if (!(await this.#isSaved(recorded, mark))) return unaccepted
    if (plain.length > 0)
      return {
        entry: { id, config, secrets: {} },
        problem: failingStatus(`${waiting(id, plain[0]!)} to use it`, 'unauthorized'),
      }
    const secrets: { [field: string]: string } = {}
    for (const field of names) {
      const value = await this.#deps.vault.get(id, field)
      if (value === undefined)
        return {
          entry: { id, config, secrets },
          problem: failingStatus(
            (await this.#deps.vault.isOpen())
              ? `its secret ${field} is not stored here: set it with POST /capabilities/${id}/secret`
              : `its secret ${field} cannot be read: open the store of secrets with POST /secrets/store`,
            'unauthorized',
          ),
        }
      secrets[field] = value
    }
    // The card may have changed while its secrets were read.
    if (handler?.mark?.(config) !== mark) return unaccepted
    const entry = { id, config, secrets }
    return { entry: handler?.unfold?.(entry) ?? entry }
  }

  /** From here on the secrets of a connection may be sent where its fields say, and it does what they say. */
  async allow(id: string, kind: string, config: ShownConfig, mark?: string): Promise<void> {
    await this.#deps.store.set(SAVED + id, fingerprint(kind, config, mark))
  }

  /** Accounts and identities that name a connection name its other id. */
  async repoint(id: string, to: string): Promise<void> {
    for (const entry of await this.all()) {
      const fields = LINKS.filter(field => entry.config[field] === id)
      if (!LINKED.has(entry.kind) || fields.length === 0) continue
      const accepted = await this.isAccepted(entry)
      const now = Object.fromEntries(fields.map(field => [field, to]))
      await this.#deps.file.change(entry.id, found => found && { ...found, config: { ...found.config, ...now } })
      const { kind, config, handler } = entry
      const next = { ...config, ...now }
      if (accepted) await this.allow(entry.id, kind, next, handler?.mark?.(next))
    }
  }

  async disallow(id: string): Promise<void> {
    await this.#deps.store.delete(SAVED + id)
  }

  /** Carries the permission to another id. */
  async carry(id: string, to: string): Promise<void> {
    const saved = await this.#deps.store.get<string>(SAVED + id)
    if (saved !== undefined) await this.#deps.store.set(SAVED + to, saved)
  }

  /** Whether it was ever saved through a call, as it is or otherwise. */
  async wasSaved({ id }: Pick<RecordedEntry, 'id'>): Promise<boolean> {
    return (await this.#deps.store.get<string>(SAVED + id)) !== undefined
  }

  /** Whether it is as it was saved through a call; otherwise it may have come with the code. */
  async isAccepted(entry: Pick<RecordedEntry, 'id' | 'kind' | 'config' | 'handler'>): Promise<boolean> {
    return this.#isSaved(entry, entry.handler?.mark?.(entry.config))
  }

  async #isSaved(
    { id, kind, config }: Pick<RecordedEntry, 'id' | 'kind' | 'config'>,
    mark: string | undefined,
  ): Promise<boolean> {
    return (await this.#deps.store.get<string>(SAVED + id)) === fingerprint(kind, config, mark)
  }

  /**
   * Moves values that were written by hand into the store of secrets, and leaves the marker in the file: once a call
   * that changes the connection says so, since the file may have come with the code.
   */
  async takeIn(id: string): Promise<void> {
    const { file, vault, log } = this.#deps
    const entry = (await file.read()).entries.get(id)
    const handler = entry && (await this.#handlersOf(new Map([[id, entry]]))).get(entry.kind)
    const plain = entry ? plainFields(entry, handler) : []
    if (!entry || plain.length === 0) return
    await vault.assertOpen()
    for (const field of plain)
      if (handler?.keptSecrets?.includes(field) && (await vault.get(id, field)) !== undefined)
        refuse('conflict', `${id}: its secret ${field} stands in ${FILE}, and another one is stored: remove it there`)
    for (const field of plain) await vault.put(id, field, String(entry.config[field]))
    const marked = Object.fromEntries(plain.map(field => [field, VAULTED]))
    await file.change(id, now => now && { ...now, config: { ...now.config, ...marked } })
    log.info('secrets written into the file of connections were moved to the store of secrets', { id, fields: plain })
  }

  #tell(problems: readonly string[]): void {
    const told = problems.join('\n')
    if (told && told !== this.#told)
      this.#deps.log.warn(`${FILE} has entries that are not used`, { problems: problems.slice(0, 20) })
    this.#told = told
  }
}

/** Over every field that is no secret: each may widen what a connection does. */
const fingerprint = (kind: string, config: ShownConfig, mark?: string): string =>
  orderedHash([
    ...[kind, Object.fromEntries(Object.entries(config).filter(([, value]) => value !== VAULTED))],
    ...(mark === undefined ? [] : [mark]),
  ])

/** Why a value that was written by hand is not used yet. */
const waiting = (id: string, field: string): string =>
  `its secret ${field} stands in ${FILE} and waits: store it with POST /capabilities/${id}/secret`

const savedWith = ({ handler }: Pick<RecordedEntry, 'handler'>): string =>
  handler ? 'POST /capabilities' : 'the call of its group'

const entryOf = (id: string, { kind, label, config }: FileEntry, handler: KindHandler | undefined): RecordedEntry => {
  const fields = Object.entries(config)
  const secret = new Set(handler?.secretFields(config))
  const names = fields.filter(([, value]) => value === VAULTED).map(([field]) => field)
  const shown = Object.fromEntries(fields.filter(([field, value]) => !secret.has(field) && value !== VAULTED))
  return {
    id,
    kind,
    label: (handler?.label(shown) || label) ?? id,
    config: shown,
    secrets: names,
    plain: plainFields({ kind, config }, handler),
    ...(handler && { handler }),
  }
}

/** The secret fields in which a value stands that somebody wrote by hand. */
const plainFields = ({ config }: FileEntry, handler: KindHandler | undefined): string[] =>
  (handler?.secretFields(config) ?? []).filter(
    field => config[field] !== undefined && config[field] !== VAULTED && config[field] !== '',
  )
