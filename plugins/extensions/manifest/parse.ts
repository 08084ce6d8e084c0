import { join } from 'node:path'
import { explain } from '../../../sdk/index.js'
import { parseObject } from '../../../sdk/node/files/json.js'
import { plainBytes } from '../../../sdk/node/files/real-folders.js'
import { checkIdentity, checkManifest } from './contract.js'
import { admitsHost, engineRange, HOST_API_VERSION } from './engines.js'
import { wrongFragment } from './fragment.js'
import type { ExtensionManifest } from './manifest.js'
import { wrongInManifest } from './manifest-rules.js'

/** The file that makes a folder an extension. */
export const MANIFEST_FILE = 'intentic-extension.json'
const MOST_BYTES = 512 * 1024
const SLUG = /^[a-z0-9][a-z0-9-]{0,59}$/
const KINDS = new Set(['cli', 'browser', 'host', 'agent', 'mcp'])

/** An extension as its manifest describes it. */
export interface ParsedExtension {
  readonly id: string
  readonly name: string
  readonly version: string
  readonly manifest: ExtensionManifest
  /** The range of host versions that it runs on. */
  readonly engines?: string
  /** Its range includes this host; otherwise nothing of it is used. */
  readonly compatible: boolean
}

/** Why a folder is not an extension. */
export interface UnusableManifest {
  readonly error: string
}

/** Reads the manifest of a folder; `named` is the folder's name, used where the manifest gives none. */
export const readExtension = async (root: string, named: string): Promise<ParsedExtension | UnusableManifest> => {
  const bytes = await plainBytes(join(root, MANIFEST_FILE), MOST_BYTES)
  if (!bytes) return { error: `${MANIFEST_FILE} is missing, no plain file, or larger than ${MOST_BYTES} bytes` }
  const parsed = parseExtension(bytes, named)
  if ('error' in parsed || !parsed.compatible) return parsed
  const { environment, capabilities = [] } = parsed.manifest.contributes ?? {}
  for (const path of [environment?.fragment, ...capabilities.map(({ fragment }) => fragment)]) {
    const wrong = path === undefined ? undefined : await wrongFragment(root, path)
    if (wrong !== undefined) return { error: wrong }
  }
  return parsed
}

/** Reads a manifest. */
export const parseExtension = (bytes: Buffer, named: string): ParsedExtension | UnusableManifest => {
  let value: { engines?: unknown; internal?: unknown; contributes?: unknown }
  try {
    value = parseObject(bytes)
  } catch (error) {
    return { error: `${MANIFEST_FILE}: ${(error as Error).message.replace(/the body |a body/, 'it ')}` }
  }
  const { range, wrong } = engineRange(value.engines)
  if (wrong !== undefined) return { error: wrong }
  const compatible = admitsHost(range)
  const privileged = privilegedKey(value)
  if (privileged !== undefined) return { error: privileged }
  const checked = checkManifest(value)
  if (!checked.success) {
    if (!compatible) return identified(value, named, range)
    const [first] = explain(checked.errors, '$input')
    const found = first?.value === undefined ? '' : `, found ${JSON.stringify(first.value)}`
    const what =
      checked.errors[0]?.expected === 'undefined' ? 'no key of a manifest' : `expected ${first?.expected}${found}`
    return { error: `${MANIFEST_FILE}: ${first?.path}: ${what}` }
  }
  const broken = wrongInManifest(checked.data)
  if (broken !== undefined) return compatible ? { error: broken } : identified(value, named, range)
  return withIdentity(checked.data, named, range, compatible)
}

/** A key that requests the powers of internal plugins. */
const privilegedKey = ({
  internal,
  contributes,
}: {
  internal?: unknown
  contributes?: unknown
}): string | undefined => {
  if (internal !== undefined) return 'internal: only groups of the sandbox itself have this key'
  const cards = (contributes as { capabilities?: unknown } | undefined)?.capabilities
  if (!Array.isArray(cards)) return undefined
  const at = cards.findIndex(card => {
    const kind = (card as { kind?: unknown } | null)?.kind
    return typeof kind === 'string' && !KINDS.has(kind)
  })
  if (at < 0) return undefined
  const { kind } = cards[at] as { kind: string }
  return (
    `contributes.capabilities[${at}].kind: ${JSON.stringify(kind.slice(0, 40))} is served by the sandbox itself; `
    + `expected one of ${[...KINDS].join(', ')}`
  )
}

/** Of a manifest for another host only the identity is read. */
const identified = (value: object, named: string, range: string | undefined): ParsedExtension | UnusableManifest => {
  const known = checkIdentity({ ...value })
  return known.success
    ? withIdentity(known.data as ExtensionManifest, named, range, false)
    : { error: `${MANIFEST_FILE} is for another host (${range}; this one is ${HOST_API_VERSION}) and has no identity` }
}

const withIdentity = (
  manifest: ExtensionManifest,
  named: string,
  engines: string | undefined,
  compatible: boolean,
): ParsedExtension | UnusableManifest => {
  const { publisher = 'local', name = slugOf(named), version = '0.0.0' } = manifest
  if (publisher === 'sandbox') return { error: 'publisher: sandbox is reserved for the sandbox itself' }
  if (!SLUG.test(name)) return { error: `name: expected one, since the folder ${JSON.stringify(named)} gives none` }
  return {
    id: `${publisher}.${name}`,
    ...{ name, version, manifest, compatible },
    ...(engines !== undefined && { engines }),
  }
}

/** A folder's name, folded to a short name. */
export const slugOf = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 60)
