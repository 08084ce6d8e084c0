import { access, constants, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { Refusal, refuse, ignored } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import { replaceFile, sweepTemporaries } from '../../sdk/node/files/disk.js'
import { codeOf } from '../../sdk/node/files/paths.js'
import type { StoreConfig } from './contract.js'
import { checkEnvPath, EnvFile } from './env/env-file.js'
import { EnvTextError, isEnvValue } from './env/env-text.js'
import type { KnownSecret, OpenStore, StoreChange, StoreDeps } from './open-store.js'
import { StoreMoves } from './store-moves.js'
import {
  fitsVault,
  keyOfPassphrase,
  newHead,
  openVault,
  readVault,
  sealVault,
  withCheck,
  type SealedVault,
  type StoredSecret,
  type VaultContent,
  type VaultHead,
} from './vault/vault.js'

const INDEX = 'names'
const LOCKED = 'the store of secrets is locked: its owner opens it with the passphrase (POST /secrets/store)'
/** What the first value is kept in where nobody chose a place. */
const MADE: StoreConfig = { kind: 'vault', unlock: 'file' }
/** The codes of a disk that nothing can be written to. */
const NOT_WRITABLE: ReadonlySet<string | undefined> = new Set(['EROFS', 'EACCES', 'EPERM'])
const EMPTY: VaultContent = { secrets: [], replaced: [] }

/**
 * Where secrets are kept: one vault, and the `.env` file for which it may stand.
 *
 * The vault is replaced in one step, and its head says everything about how it is opened, so there is always one
 * complete store. With a `.env` file the values of plain keys are there and nowhere else.
 */
export class SecretStore {
  readonly #deps: StoreDeps
  readonly #moves: StoreMoves
  readonly #turns = new KeyedMutex()
  #vault: SealedVault | undefined
  #open: OpenStore | undefined
  #env: EnvFile | undefined
  #why = LOCKED
  #known: readonly KnownSecret[] = []

  constructor(deps: StoreDeps) {
    this.#deps = deps
    this.#moves = new StoreMoves(deps)
  }

  /** Reads what is there, and opens it where no person is needed. */
  start(): Promise<void> {
    return this.#turns.with('', () => this.#start())
  }

  get head(): VaultHead | undefined {
    return this.#vault?.head
  }

  /** Why it is locked, as a sentence; undefined where it is open, or where there is none. */
  get locked(): string | undefined {
    return this.#vault && !this.#open ? this.#why : undefined
  }

  /** What is known of every stored value, also while it is locked. */
  async known(): Promise<readonly KnownSecret[]> {
    const content = await this.#current().catch(() => undefined)
    return content ? content.secrets.map(withoutValue) : this.#known
  }

  /** Everything that is stored; refuses while it is locked. Nothing where there is no store. */
  async content(): Promise<VaultContent> {
    return this.#vault ? this.#current() : EMPTY
  }

  /**
   * Changes what is stored, durably; `work` returns what to keep, or its argument where nothing changes.
   *
   * The first value makes the store; the answer says whether it did.
   */
  change(work: (content: VaultContent) => VaultContent): Promise<boolean> {
    return this.#turns.with('', async () => {
      const before = await this.content()
      const next = work(before)
      if (next === before) return false
      const first = !this.#vault
      if (first) await this.#make()
      await this.#keep(before, next)
      return first
    })
  }

  /** Sets the place up, opens it, or moves every value to another one; answers how many moved. */
  choose(config: StoreConfig): Promise<number> {
    return this.#turns.with('', async () => {
      if (config.kind === 'dotenv') await checkEnvPath(this.#deps.workspace, config.path)
      if (this.#vault && !this.#open) await this.#unlock(config)
      else if (!(await this.#isSame(config))) return this.#move(config)
      return 0
    })
  }

  async #start(): Promise<void> {
    const { folder, keys } = this.#deps
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await sweepTemporaries(folder)
    const bytes = await readFile(this.#file).catch(error => {
      if (codeOf(error) !== 'ENOENT') throw error
    })
    this.#known = (await this.#deps.files.read<KnownSecret[]>(INDEX)) ?? []
    if (!bytes) return
    try {
      this.#vault = readVault(bytes)
    } catch (error) {
      throw new Error(`the vault ${this.#file} cannot be read: ${(error as Error).message}`, { cause: error })
    }
    const key = await keys.find(this.#vault.head).catch(() => undefined)
    if (key) await this.#openWith(key)
    else if (this.#vault.head.unlock !== 'passphrase') this.#why = withoutKey(this.#vault.head)
  }

  /** Opens the vault with its key; where that fails it stays locked and says why. */
  async #openWith(key: Buffer): Promise<void> {
    const vault = this.#vault!
    try {
      const content = openVault(vault, key)
      this.#env = vault.head.dotenv === undefined ? undefined : new EnvFile(this.#deps.workspace, vault.head.dotenv)
      this.#open = { head: vault.head, key, content: await withEnv(content, this.#env) }
    } catch (error) {
      this.#why = `the store of secrets does not open: ${reasonOf(error, vault.head)}`
      return
    }
    await this.#env?.sweep()
    await this.#moves.finish(this.#open)
    await this.#deps.keys.sweep(vault.head.key)
    await this.#noteNames()
    await this.#deps.changed(NOTHING)
  }

  /** What is stored now, with what somebody wrote into the `.env` file meanwhile. */
  async #current(): Promise<VaultContent> {
    if (!this.#open) return refuse('unavailable', this.#why)
    const { content } = this.#open
    try {
      const now = await withEnv(content, this.#env)
      if (now !== content) {
        this.#open = { ...this.#open, content: now }
        await this.#deps.changed(changeOf(content, now))
      }
      return now
    } catch (error) {
      return refuse('unavailable', `the store of secrets does not open: ${reasonOf(error, this.#open.head)}`)
    }
  }

  async #keep(before: VaultContent, next: VaultContent): Promise<void> {
    const { head, key } = this.#open!
    const [was, now] = [plainValues(before), plainValues(next)]
    const set = new Map([...now].filter(([name, value]) => was.get(name) !== value))
    const drop = new Set([...was.keys()].filter(name => !now.has(name)))
    if (this.#env) assertEnvValues(set)
    // A value in a `.env` file is never without its binding, which is in the vault.
    if (drop.size > 0) await this.#env?.edit(new Map(), drop)
    failpoint('secrets.env.dropped')
    await replaceFile(this.#file, sealVault(head, key, inVault(next, head)))
    failpoint('secrets.vault.written')
    if (set.size > 0) await this.#env?.edit(set, new Set())
    failpoint('secrets.env.written')
    this.#open = { head, key, content: next }
    await this.#noteNames()
    await this.#deps.changed(changeOf(before, next))
  }

  async #noteNames(): Promise<void> {
    const known = this.#open!.content.secrets.map(withoutValue)
    if (!isDeepStrictEqual(known, this.#known)) await this.#deps.files.write(INDEX, known)
    this.#known = known
  }

  async #unlock(config: StoreConfig): Promise<void> {
    const { head } = this.#vault!
    const same =
      config.kind === 'vault' ? head.dotenv === undefined && config.unlock === head.unlock : config.path === head.dotenv
    if (!same) refuse('unavailable', `${this.#why}; then choose another place`)
    if (config.kind === 'vault' && config.unlock === 'passphrase') {
      const key = await keyOfPassphrase(config.passphrase!, head)
      if (!fitsVault(head, key)) throw new WrongPassphrase()
      await this.#openWith(key)
    } else {
      const key = await this.#deps.keys.find(head)
      if (key) await this.#openWith(key)
    }
    if (!this.#open) refuse('unavailable', this.#why)
  }

  async #isSame(config: StoreConfig): Promise<boolean> {
    const head = this.#open?.head
    if (!head) return false
    if (config.kind === 'dotenv') return head.dotenv === config.path
    if (head.dotenv !== undefined || head.unlock !== config.unlock) return false
    return config.unlock !== 'passphrase' || fitsVault(head, await keyOfPassphrase(config.passphrase!, head))
  }

  async #move(config: StoreConfig): Promise<number> {
    const { keys, workspace } = this.#deps
    const from = this.#open && { ...this.#open, content: await this.#current() }
    const plain = config.kind === 'dotenv'
    const bare = newHead(plain ? 'file' : config.unlock, plain ? config.path : undefined)
    const env = plain ? new EnvFile(workspace, config.path) : undefined
    const there = (await env?.values()) ?? new Map<string, string>()
    const values = plainValues(from?.content ?? EMPTY)
    const others = [...values].filter(([name, value]) => there.has(name) && there.get(name) !== value)
    if (others.length > 0)
      refuse(
        'conflict',
        `${env!.path} has other values for ${others.map(([name]) => name).join(', ')}: remove them there`,
      )
    const add = new Map([...values].filter(([name]) => env && !there.has(name)))
    if (env) assertEnvValues(add)
    await this.#moves.begin({ from: from?.head, to: bare, added: [...add.keys()] })
    try {
      const passphrase = config.kind === 'vault' ? config.passphrase : undefined
      const key = await keys.make(bare, passphrase)
      const head = withCheck(bare, key)
      if (env) await this.#moves.fill(env, add, values)
      failpoint('secrets.move.filled')
      const content = from?.content ?? EMPTY
      const found = bare.unlock === 'passphrase' ? await keyOfPassphrase(passphrase!, bare) : await keys.find(bare)
      const bytes = sealVault(head, key, inVault(content, head))
      await this.#moves.compare(bytes, found, inVault(content, head))
      await replaceFile(this.#file, bytes)
      failpoint('secrets.move.switched')
      this.#vault = readVault(bytes)
      this.#env = env
      this.#open = { head, key, content: await withEnv(content, env) }
    } catch (error) {
      await this.#moves.undo(from).catch(ignored('the failure before it counts'))
      throw error
    }
    await this.#moves.finish(this.#open)
    await keys.sweep(this.#open.head.key)
    await this.#noteNames()
    await this.#deps.changed(NOTHING)
    return from?.content.secrets.length ?? 0
  }

  /** Makes an empty store for the first value. */
  async #make(): Promise<void> {
    try {
      await access(this.#deps.folder, constants.W_OK)
      await this.#move(MADE)
    } catch (error) {
      const code = codeOf(error)
      if (!NOT_WRITABLE.has(code)) throw error
      refuse('conflict', `the sandbox has nowhere to keep secrets: its data folder cannot be written to (${code})`, {
        cause: error,
      })
    }
  }

  get #file(): string {
    return join(this.#deps.folder, 'secrets.vault')
  }
}

/** The passphrase given is not that of the vault. */
export class WrongPassphrase extends Refusal {
  constructor() {
    super('forbidden', 'the passphrase is not that of the store: nothing was opened')
  }
}

const withoutValue = ({ value: _value, ...known }: StoredSecret): KnownSecret => known

/** The plain keys with their values. */
export const plainValues = ({ secrets }: VaultContent): Map<string, string> =>
  new Map(secrets.flatMap(({ name, kind, value }) => (kind === 'field' ? [] : [[name, value] as const])))

/** Refuses values whose end the readers of a `.env` file see at different places. */
const assertEnvValues = (values: ReadonlyMap<string, string>): void => {
  for (const [name, value] of values)
    if (!isEnvValue(value))
      refuse('unprocessable', `${name}: expected a value that does not end with a backslash, as its .env file keeps it`)
}

/** What lies in the vault itself: of plain keys in a `.env` file all but the value. */
const inVault = (content: VaultContent, { dotenv }: VaultHead): VaultContent =>
  dotenv === undefined
    ? content
    : { ...content, secrets: content.secrets.map(each => (each.kind === 'field' ? each : { ...each, value: '' })) }

/** The content with the values of a `.env` file; the same where they are as they were. */
const withEnv = async (content: VaultContent, env: EnvFile | undefined): Promise<VaultContent> => {
  if (!env) return content
  const values = await env.values()
  const there = content.secrets.flatMap((each): StoredSecret[] => {
    const value = values.get(each.name)
    return each.kind === 'field' ? [each] : value ? [{ ...each, value }] : []
  })
  const named = new Set(there.map(({ name }) => name))
  const more = [...values].filter(([name, value]) => value && !named.has(name) && KEY.test(name))
  const secrets = [...there, ...more.map(([name, value]): StoredSecret => ({ name, kind: 'env', value, at: 0 }))]
  return isDeepStrictEqual(secrets, content.secrets) ? content : { ...content, secrets }
}

const KEY = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/

const NOTHING: StoreChange = { set: [], removed: [] }

const changeOf = (before: VaultContent, next: VaultContent): StoreChange => {
  const was = new Map(before.secrets.map(each => [each.name, each]))
  const is = new Set(next.secrets.map(({ name }) => name))
  return {
    set: next.secrets.filter(each => !isDeepStrictEqual(was.get(each.name), each)).map(({ name }) => name),
    removed: [...was.keys()].filter(name => !is.has(name)),
  }
}

const withoutKey = ({ unlock, key }: VaultHead): string =>
  unlock === 'keyring'
    ? 'the store of secrets is locked: the key ring of the system does not give its key; open the ring and ask again'
    : `the store of secrets is locked: its key file keys/${key}.key is gone; bring it back from a backup`

const reasonOf = (error: unknown, { dotenv }: VaultHead): string =>
  error instanceof EnvTextError ? `${dotenv}, ${error.message}` : (error as Error).message
