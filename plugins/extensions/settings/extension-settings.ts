import { Refusal, refuse, type Host } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { ConfigFile } from '../../../sdk/node/files/config-file.js'
import { isSettingValue } from '../manifest/manifest-rules.js'
import type { ExtensionManifest, ExtensionSetting } from '../manifest/manifest.js'

/** The file with the settings of extensions, from the workspace. */
export const SETTINGS_FILE = '.sandbox/config/extension-settings.json'
const LOCKED = 'the store of secrets is locked: open it with POST /secrets/store, and try again'
const NO_GROUP = 'this sandbox runs without the group of secrets, which keeps secret settings'
const MOST_SECRET = 64 * 1024

type Values = { [key: string]: string | number | boolean }

/** The settings of extensions: plain values in a file of the workspace, secret ones in the store of secrets. */
export class ExtensionSettings {
  readonly #host: Pick<Host, 'call' | 'serves'>
  readonly #file: ConfigFile
  readonly #lock = new KeyedMutex()

  constructor(host: Pick<Host, 'call' | 'serves' | 'place'>) {
    this.#host = host
    this.#file = new ConfigFile(host.place.workspace, SETTINGS_FILE, 'settings of extensions')
  }

  /** The settings of an extension with defaults, and the secret keys that have a value. */
  async of(id: string, manifest: ExtensionManifest): Promise<{ settings: Values; secretsSet: string[] }> {
    const declared = manifest.contributes?.settings ?? []
    const [stored, secrets] = await Promise.all([this.stored(id), this.secretKeys(id)])
    const settings = declared.flatMap(setting => {
      const { key, secret, default: preset } = setting
      const value = Object.hasOwn(stored, key) && isSettingValue(setting, stored[key]) ? stored[key] : preset
      return secret || value === undefined ? [] : [[key, value] as const]
    })
    const secretsSet = declared.filter(({ key, secret }) => secret && secrets.includes(key)).map(({ key }) => key)
    return { settings: Object.fromEntries(settings) as Values, secretsSet }
  }

  /** The unchecked values of an extension in the file. */
  async stored(id: string): Promise<{ readonly [key: string]: unknown }> {
    const { keys, wrong } = await this.#file.load()
    if (wrong !== undefined) refuse('unprocessable', wrong)
    const found = Object.hasOwn(keys, id) ? keys[id] : undefined
    return typeof found === 'object' && found !== null && !Array.isArray(found)
      ? (found as { [key: string]: unknown })
      : {}
  }

  /** The secret keys of an extension that have a value. */
  async secretKeys(id: string): Promise<string[]> {
    if (!(await this.#host.serves('secrets.names'))) return []
    const { names } = await this.#host.call('secrets.names')
    return names.flatMap(name => (name.startsWith(`ext/${id}/`) ? [name.slice(`ext/${id}/`.length)] : []))
  }

  /** Replaces the values of an extension: secrets first, then the file. Returns the keys that changed. */
  async set(id: string, manifest: ExtensionManifest, values: Values): Promise<string[]> {
    const declared = new Map((manifest.contributes?.settings ?? []).map(setting => [setting.key, setting]))
    const unknown = Object.keys(values).find(key => !declared.has(key))
    if (unknown !== undefined)
      refuse('unprocessable', `${id} declares no setting ${JSON.stringify(unknown.slice(0, 60))}`, {
        errors: [{ path: 'settings', expected: `one of ${[...declared.keys()].join(', ') || 'no key'}` }],
      })
    for (const [key, value] of Object.entries(values)) assertFits(declared.get(key)!, value)
    const plain = Object.fromEntries(Object.entries(values).filter(([key]) => !declared.get(key)!.secret)) as Values
    const secret = Object.entries(values).filter(([key]) => declared.get(key)!.secret) as [string, string][]
    return this.#lock.with('file', async () => {
      const before = await this.stored(id)
      const set = await this.secretKeys(id)
      for (const [key, value] of secret) await this.#setSecret(`ext/${id}/${key}`, value, set.includes(key))
      failpoint('extensions.settings.secrets')
      await this.#write(id, plain)
      const keys = [...declared.keys()].filter(key => before[key] !== plain[key])
      return [...new Set([...keys, ...secret.map(([key]) => key)])]
    })
  }

  /** Removes all values of an extension. */
  async drop(id: string): Promise<void> {
    if ((await this.secretKeys(id)).length > 0) await opened(this.#host.call('secrets.drop', { name: `ext/${id}/` }))
    await this.#lock.with('file', () => this.#write(id, {}))
  }

  /** Refuses if the secret values of an extension could not be removed now. */
  async assertDroppable(id: string, withSecrets = false): Promise<void> {
    await this.stored(id)
    if ((withSecrets || (await this.secretKeys(id)).length > 0) && !(await this.#host.call('secrets.names')).open)
      refuse('unavailable', LOCKED)
  }

  async #setSecret(name: string, value: string, there: boolean): Promise<void> {
    if (!(await this.#host.serves('secrets.put'))) refuse('unavailable', NO_GROUP)
    if (value !== '') await opened(this.#host.call('secrets.put', { name, value }))
    else if (there) await opened(this.#host.call('secrets.drop', { name }))
  }

  async #write(id: string, values: Values): Promise<void> {
    const kept = await this.#file.load()
    if (kept.wrong !== undefined) refuse('unprocessable', kept.wrong)
    const { [id]: before, ...others } = kept.keys
    const keys = Object.keys(values).length > 0 ? { ...others, [id]: values } : others
    if (JSON.stringify(keys) !== JSON.stringify(kept.keys)) await this.#file.save({ keys, mode: kept.mode })
  }
}

const assertFits = (setting: ExtensionSetting, value: unknown): void => {
  const { key, type, enum: choices } = setting
  const expected = type === 'enum' ? `one of ${choices!.join(', ')}` : type
  if (!isSettingValue(setting, value) || (typeof value === 'number' && !Number.isFinite(value)))
    refuse('invalid', `settings.${key}: expected ${expected}, found ${typeof value}`, {
      errors: [{ path: `settings.${key}`, expected }],
    })
  if (!setting.secret || typeof value !== 'string') return
  if (Buffer.byteLength(value) > MOST_SECRET) refuse('too-large', `settings.${key}: expected at most 64 KiB`)
  if (value.includes('\0')) refuse('invalid', `settings.${key}: expected no NUL character`)
}

/** Where no store can be made or opened, a secret cannot be stored: 503, not a conflict. */
const opened = async <T>(asked: Promise<T>): Promise<T> => {
  try {
    return await asked
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'conflict') refuse('unavailable', error.message, { cause: error })
    throw error
  }
}
