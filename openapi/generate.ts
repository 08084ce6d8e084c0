import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import typia from 'typia'
import type { Contract } from '../sdk/contract.js'
import { parseManifest } from '../kernel/manifest.js'
import type { PluginManifest } from '../kernel/manifest.js'
import { openapi } from './document.js'
import type { PublishedGroup } from './group.js'
import { assembled, partsOf } from './groups.js'
import { permissionsPage, type ShownLimits } from './permissions-page.js'
import { byName, published } from './schemas.js'
import type { JsonSchema } from './schemas.js'
import { sdkReference } from './sdk-reference.js'

// The program's folder, to which entries of manifests are relative, and the project to write files to.
const root = dirname(import.meta.dirname)
const project = process.cwd()

/** Loads every group of the project with its contract. */
const load = async (): Promise<PublishedGroup[]> => {
  const files = (await readdir(join(project, 'manifests'))).sort()
  return Promise.all(
    files
      .filter(file => file.endsWith('.json') && file !== 'schema.json')
      .map(async file => {
        const manifest = parseManifest(await readFile(join(project, 'manifests', file), 'utf8'), file)
        const { contract } = (await import(pathToFileURL(join(root, manifest.entry)).href)) as { contract: Contract }
        return { manifest, contract }
      }),
  )
}

/** The JSON Schema of manifests, for completion and validation in editors. */
const manifestSchema = (): object => {
  const {
    components: { schemas = {} },
  } = typia.json.schemas<[PluginManifest], '3.1'>()
  const { PluginManifest: manifest, ...others } = Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, published(schema as JsonSchema)]),
  )
  const text = JSON.stringify({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Manifest of a group',
    ...manifest,
    $defs: byName(others),
  })
  return JSON.parse(text.replaceAll('"#/components/schemas/', '"#/$defs/')) as object
}

const lines = (value: object): string => `${JSON.stringify(value, undefined, 2)}\n`

const PARTS = 'openapi/groups'

/** The pages for authors of extensions, in a project that has the packages for them. */
const authorPages = async (): Promise<[name: string, text: string][]> => {
  if (!existsSync(join(project, 'sdk'))) return []
  const limits = pathToFileURL(join(root, 'plugins/extensions/backend/process/limits.js')).href
  const { BACKEND_LIMITS } = (await import(limits)) as { BACKEND_LIMITS: ShownLimits }
  return [
    ['sdk/REFERENCE.md', sdkReference(project)],
    ['sdk/PERMISSIONS.md', permissionsPage(BACKEND_LIMITS)],
  ]
}

const parts = partsOf(openapi(await load()))
const files: readonly [name: string, text: string][] = [
  ...Object.entries(parts).map(([group, part]): [string, string] => [`${PARTS}/${group}.json`, lines(part)]),
  ['openapi/openapi.json', lines(assembled(parts))],
  ['manifests/schema.json', lines(manifestSchema())],
  ...(await authorPages()),
]
const left = (await readdir(join(project, PARTS)).catch(() => []))
  .map(name => `${PARTS}/${name}`)
  .filter(file => !files.some(([name]) => name === file))

/** Members of a schema whose lists are sets: their order means nothing (JSON Schema 2020-12, Validation, 6). */
const SETS: ReadonlySet<string> = new Set(['required', 'enum', 'type', 'oneOf', 'anyOf'])

/** A document with members of objects and of sets in one order. */
const ordered = (value: unknown, member = ''): unknown => {
  if (Array.isArray(value)) {
    const items = value.map(item => ordered(item))
    return SETS.has(member) ? items.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) : items
  }
  if (value === null || typeof value !== 'object') return value
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(members.map(([name, inner]) => [name, ordered(inner, name)]))
}

/**
 * Whether a file says what it should. The order of members means nothing in JSON (RFC 8259, 4), and the compiler gives
 * those of some types in another order when it compiles a part of the project.
 */
const isCurrent = async (name: string, text: string): Promise<boolean> => {
  const found = await readFile(join(project, name), 'utf8').catch(() => '')
  if (found === text || !name.endsWith('.json')) return found === text
  try {
    return isDeepStrictEqual(ordered(JSON.parse(found)), ordered(JSON.parse(text)))
  } catch {
    return false
  }
}

if (process.argv.includes('--check')) {
  for (const [name, text] of files) {
    if (await isCurrent(name, text)) continue
    console.error(`${name} is not current: run npm run openapi and commit it`)
    process.exitCode = 1
  }
  for (const name of left) {
    console.error(`${name} belongs to no group: run npm run openapi and commit its removal`)
    process.exitCode = 1
  }
} else {
  for (const name of left) await rm(join(project, name))
  for (const [name, text] of files) {
    if (await isCurrent(name, text)) continue
    await mkdir(dirname(join(project, name)), { recursive: true })
    await writeFile(join(project, name), text)
    console.log(`wrote ${name}`)
  }
}
