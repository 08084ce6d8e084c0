import { createHash } from 'node:crypto'
import { cp, lstat, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Refusal, refuse, type Host } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { ConfigFile } from '../../../sdk/node/files/config-file.js'
import { inside } from '../../../sdk/node/files/paths.js'
import { checkOutNamed, type NamedSource } from '../../../sdk/node/transport/fetched-commit.js'
import { BUILT_IN } from './built-in.js'
import type { AppTemplate, TemplateList } from './contract.js'

const CONFIG = '.sandbox/config/templates.json'
const FIELDS = '{ "source": text, "ref"?: text, "secret"?: text }'
/** What is wrong with a source is wrong in the file that names it, not in what a caller asked for. */
const WRONG_SOURCE = new Set(['invalid', 'not-found', 'too-large', 'unprocessable'])
const LIMITS = { files: 20_000, bytes: 512 * 1024 ** 2, purpose: 'reading templates' }
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

/** The templates of a sandbox: the built-in ones, or those of a git repository that is fetched once. */
export class Templates {
  readonly #host: TemplatesHost
  readonly #config: ConfigFile
  readonly #locks = new KeyedMutex()

  constructor(host: TemplatesHost) {
    this.#host = host
    this.#config = new ConfigFile(host.place.workspace, CONFIG, 'templates')
  }

  async all(): Promise<UsableTemplates> {
    const { keys, wrong } = await this.#config.load()
    if (wrong !== undefined) refuse('unprocessable', wrong)
    if (Object.keys(keys).length === 0) return builtIn()
    const { source, ref, secret } = keys
    if (!isText(source) || !isOptionalText(ref) || !isOptionalText(secret))
      return refuse('unprocessable', `${CONFIG}: expected ${FIELDS}, found something else`)
    const folder = await this.#locks.with('fetch', () => this.#fetched({ url: source, ref, secret }))
    return { source, ...(ref !== undefined && { ref }), templates: await this.#templatesIn(folder) }
  }

  /** The folder with what a source holds; fetched if that was never done, with whatever token. */
  async #fetched(source: NamedSource): Promise<string> {
    const cache = join(this.#host.place.folder, 'templates')
    const folder = join(
      cache,
      createHash('sha256')
        .update(JSON.stringify([source.url, source.ref]))
        .digest('hex'),
    )
    const known = await lstat(folder).catch(() => undefined)
    if (known) return folder
    await mkdir(cache, { recursive: true, mode: 0o700 })
    const staged = await mkdtemp(join(cache, 'fetch-'))
    try {
      await checkOutNamed(this.#host, staged, source, LIMITS)
      await rename(staged, folder)
    } catch (error) {
      await rm(staged, { recursive: true, force: true })
      if (error instanceof Refusal && WRONG_SOURCE.has(error.reason))
        refuse('unprocessable', `${CONFIG}: ${error.message.replace(/^url:/, 'source:')}`)
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
