import { createHash } from 'node:crypto'
import { cp, lstat, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { ignored, Refusal, refuse, type Host } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { acceptedStamp, isAcceptedConfig } from '../../../sdk/node/files/accepted-config.js'
import { ConfigFile } from '../../../sdk/node/files/config-file.js'
import { inside } from '../../../sdk/node/files/paths.js'
import { checkOutNamed, type NamedSource } from '../../../sdk/node/transport/fetched-commit.js'
import type { ManifestProblem } from '../../system/contract.js'
import { BUILT_IN } from './built-in.js'
import type { AppTemplate, TemplateList } from './contract.js'

/** The file that names another source of templates, from the workspace. */
export const TEMPLATES_FILE = '.sandbox/config/templates.json'
const FIELDS = '{ "source": text, "ref"?: text, "secret"?: text }'
/** What is wrong with a source is wrong in the file that names it, not in what a caller asked for. */
const WRONG_SOURCE = new Set(['invalid', 'not-found', 'too-large', 'unprocessable'])
const LIMITS = { files: 20_000, bytes: 512 * 1024 ** 2, purpose: 'reading templates' }
const FIRST_WAIT_MS = 10_000
const LONGEST_WAIT_MS = 600_000
const SOURCE_MANIFEST = 'templates.json'

interface SourceTemplate extends AppTemplate {
  path: string
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
const isOptionalText = (value: unknown): value is string | undefined => value === undefined || isText(value)
const isTemplate = (value: unknown): value is SourceTemplate => {
  const each = (typeof value === 'object' && value !== null ? value : {}) as { [field: string]: unknown }
  return (
    ['key', 'label', 'description', 'path'].every(field => isText(each[field]))
    && (each.kind === 'app' || each.kind === 'repo')
  )
}

/** A template that can be copied. */
export interface UsableTemplate extends AppTemplate {
  /** Fills an empty folder. */
  fill(folder: string): Promise<void>
}

/** The templates in force, and where they come from. */
export interface UsableTemplates extends Omit<TemplateList, 'templates'> {
  readonly templates: readonly UsableTemplate[]
}

type TemplatesHost = Pick<Host, 'call' | 'serves' | 'place' | 'signal'>

/** Gives a manifest the name of the app that it is copied for. */
const named = async (folder: string, name: string): Promise<void> => {
  const path = join(folder, 'package.json')
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (text === undefined) return
  const fields = JSON.parse(text) as object
  await writeFile(path, `${JSON.stringify({ ...fields, name }, undefined, 2)}\n`)
}

/** Fills a folder with a template under the name of an app. */
export const fillWith = async (template: UsableTemplate, folder: string, name: string): Promise<void> => {
  await mkdir(folder)
  await template.fill(folder)
  await named(folder, name).catch(() =>
    refuse('unprocessable', `the package.json of the template ${template.key} is malformed`),
  )
}

const builtIn = (): UsableTemplates => ({
  source: 'built-in',
  templates: BUILT_IN.map(({ files, ...template }) => ({
    ...template,
    fill: async folder => {
      for (const [path, text] of Object.entries(files)) {
        await mkdir(dirname(join(folder, path)), { recursive: true })
        await writeFile(join(folder, path), text)
      }
    },
  })),
})

/** A source that could not be read. */
interface FailedRead {
  readonly of: string
  readonly error: unknown
  readonly waited: number
  readonly again: number
  /** When something was accepted last: that is a reason to try again. */
  readonly stamp: number
}

const isThere = async (path: string): Promise<boolean> => (await lstat(path).catch(() => undefined)) !== undefined

/** The templates of a sandbox: the built-in ones, or those of a git repository that is fetched once. */
export class Templates {
  readonly #host: TemplatesHost
  readonly #config: ConfigFile
  readonly #locks = new KeyedMutex()
  #failed: FailedRead | undefined

  constructor(host: TemplatesHost) {
    this.#host = host
    this.#config = new ConfigFile(host.place.workspace, TEMPLATES_FILE, 'templates')
  }

  /** What can be scaffolded, as far as it was read before: a read asks no server and uses no secret. */
  async known(): Promise<UsableTemplates> {
    const named = await this.#named()
    if (!named) return builtIn()
    const folder = this.#folderOf(named)
    if (await isThere(folder)) return this.#templatesOf(named, folder)
    const { of, stamp, error } = this.#failed ?? {}
    if (of === folder && stamp === acceptedStamp(this.#host.place.data)) throw error
    return refuse('unavailable', `the templates of ${named.url} are being read: ask again in a moment`, {
      retryAfter: 2,
    })
  }

  /** What can be scaffolded, for somebody who makes something of it: a source is read where that was never done. */
  async all(): Promise<UsableTemplates> {
    const named = await this.#named()
    return named ? this.#templatesOf(named, await this.#read(named)) : builtIn()
  }

  /** Reads the source that the owner accepted, again later where that fails. */
  async look(): Promise<void> {
    if (acceptedStamp(this.#host.place.data) === 0) return
    const named = await this.#named().catch(() => undefined)
    const folder = named && this.#folderOf(named)
    if (!named || !folder || (await isThere(folder))) return
    const { of, again, stamp } = this.#failed ?? {}
    const now = acceptedStamp(this.#host.place.data)
    if (of === folder && stamp === now && Date.now() < again!) return
    await this.#read(named).catch(ignored('whoever asks for the templates gets the failure'))
  }

  /** What is wrong with the file, for those who edit it. */
  async problems(): Promise<ManifestProblem[]> {
    const { keys, wrong } = await this.#config.load()
    if (wrong !== undefined) return [{ kind: 'unreadable', detail: wrong }]
    if (Object.keys(keys).length === 0 || isAcceptedConfig(this.#host.place.data, TEMPLATES_FILE, keys)) return []
    const detail = 'it came with the code or was changed by hand, and names a source: sandbox config accept'
    return [{ kind: 'unaccepted', detail }]
  }

  /** The source that is in force; undefined: the built-in templates are. */
  async #named(): Promise<NamedSource | undefined> {
    const { keys, wrong } = await this.#config.load()
    if (wrong !== undefined) refuse('unprocessable', wrong)
    if (Object.keys(keys).length === 0) return undefined
    const { source, ref, secret } = keys
    if (!isText(source) || !isOptionalText(ref) || !isOptionalText(secret))
      return refuse('unprocessable', `${TEMPLATES_FILE}: expected ${FIELDS}, found something else`)
    return isAcceptedConfig(this.#host.place.data, TEMPLATES_FILE, keys) ? { url: source, ref, secret } : undefined
  }

  async #templatesOf({ url, ref }: NamedSource, folder: string): Promise<UsableTemplates> {
    return { source: url, ...(ref !== undefined && { ref }), templates: await this.#templatesIn(folder) }
  }

  async #read(named: NamedSource): Promise<string> {
    const folder = this.#folderOf(named)
    // What is accepted while it is read is read again.
    const stamp = acceptedStamp(this.#host.place.data)
    try {
      const read = await this.#locks.with('fetch', () => this.#fetched(named, folder))
      this.#failed = undefined
      return read
    } catch (error) {
      const waited = this.#failed?.of === folder ? Math.min(this.#failed.waited * 2, LONGEST_WAIT_MS) : FIRST_WAIT_MS
      this.#failed = { of: folder, error, waited, stamp, again: Date.now() + waited }
      throw error
    }
  }

  #folderOf({ url, ref }: NamedSource): string {
    return join(
      this.#cache,
      createHash('sha256')
        .update(JSON.stringify([url, ref]))
        .digest('hex'),
    )
  }

  get #cache(): string {
    return join(this.#host.place.folder, 'templates')
  }

  /** The folder with what a source holds; fetched if that was never done, with whatever token. */
  async #fetched(source: NamedSource, folder: string): Promise<string> {
    if (await isThere(folder)) return folder
    const cache = this.#cache
    await mkdir(cache, { recursive: true, mode: 0o700 })
    const staged = await mkdtemp(join(cache, 'fetch-'))
    try {
      await checkOutNamed(this.#host, staged, source, LIMITS)
      await rename(staged, folder)
    } catch (error) {
      await rm(staged, { recursive: true, force: true })
      if (error instanceof Refusal && WRONG_SOURCE.has(error.reason))
        refuse('unprocessable', `${TEMPLATES_FILE}: ${error.message.replace(/^url:/, 'source:')}`)
      throw error
    }
    return folder
  }

  async #templatesIn(folder: string): Promise<UsableTemplate[]> {
    const wrong = (what: string): never =>
      refuse('unprocessable', `${SOURCE_MANIFEST} of the source of templates: ${what}`)
    const text = await readFile(await inside(folder, SOURCE_MANIFEST).catch(() => wrong('expected one, found none')), {
      encoding: 'utf8',
    }).catch(() => wrong('expected a file'))
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return wrong('it is not JSON')
    }
    const listed = (value as { templates?: unknown } | null)?.templates
    if (!Array.isArray(listed)) return wrong('expected a list of templates')
    const odd = listed.findIndex(each => !isTemplate(each))
    if (odd >= 0) return wrong(`expected key, label, description, kind and path of the template at ${odd}`)
    const found: UsableTemplate[] = []
    for (const { path, ...template } of (listed as SourceTemplate[]).filter(({ kind }) => kind === 'app')) {
      const at = await inside(folder, path).catch(() => wrong(`the template ${template.key} has no folder ${path}`))
      found.push({
        ...template,
        // Links could lead anywhere once they are in the repository.
        fill: target =>
          cp(at, target, {
            recursive: true,
            filter: async each => {
              const is = await lstat(each)
              return is.isFile() || is.isDirectory()
            },
          }),
      })
    }
    return found
  }
}
