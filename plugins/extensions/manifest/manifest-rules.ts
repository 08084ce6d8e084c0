import { isVersion } from './engines.js'
import type { ExtensionCard, ExtensionManifest, ExtensionSetting, ExtensionTool } from './manifest.js'
import { readPermission, type PermissionList } from '../../../sdk/node/extension/permission-kinds.js'
import { isTrustSurface } from './trust-surface.js'

const MOST_SCHEMA = 32 * 1024

/** The error in a manifest that its types cannot exclude; undefined: none. */
export const wrongInManifest = (manifest: ExtensionManifest): string | undefined => {
  const { version, permissions, contributes = {} } = manifest
  if (version !== undefined && !isVersion(version))
    return `version: expected a semantic version such as 1.0.0, found ${JSON.stringify(version)}`
  return (
    wrongPath(manifest)
    ?? firstOf(permissions?.daemon, (entry, at) => wrongPermission('daemon', entry, at))
    ?? firstOf(permissions?.sandbox, (entry, at) => wrongPermission('sandbox', entry, at))
    ?? firstOf(contributes.settings, wrongSetting)
    ?? firstOf(contributes.tools, wrongTool)
    ?? firstOf(contributes.capabilities, wrongCard)
    ?? twice('views', contributes.views, ({ id }) => id)
    ?? twice('sideViews', contributes.sideViews, ({ id }) => id)
    ?? twice('viewers', contributes.viewers, ({ id }) => id)
    ?? twice('documents', contributes.documents, ({ id }) => id)
    ?? twice('commands', contributes.commands, ({ command }) => command)
    ?? twice('settings', contributes.settings, ({ key }) => key)
    ?? twice('processes', contributes.processes, ({ name }) => name)
    ?? twice('tools', contributes.tools, ({ name }) => name)
    ?? twice('capabilities', contributes.capabilities, ({ id }) => id)
    ?? twice('automationTemplates', contributes.automationTemplates, ({ id }) => id)
  )
}

const firstOf = <T>(items: readonly T[] | undefined, wrong: (item: T, at: number) => string | undefined) => {
  for (const [at, item] of (items ?? []).entries()) {
    const found = wrong(item, at)
    if (found !== undefined) return found
  }
  return undefined
}

const twice = <T>(what: string, items: readonly T[] | undefined, keyOf: (item: T) => string): string | undefined => {
  const keys = (items ?? []).map(keyOf)
  const again = keys.find((key, at) => keys.indexOf(key) !== at)
  return again === undefined ? undefined : `contributes.${what}: ${again} is there twice`
}

const wrongPath = ({ entry, server, contributes = {} }: ExtensionManifest): string | undefined => {
  const { agent, environment, capabilities = [], bin, processes = [] } = contributes
  const paths: (readonly [field: string, path: string | undefined])[] = [
    ['entry', entry],
    ['server', server],
    ['contributes.agent.path', agent?.path],
    ['contributes.environment.fragment', environment?.fragment],
    ['contributes.bin', bin],
    ...processes.map(({ cwd }, at) => [`contributes.processes[${at}].cwd`, cwd] as const),
    ...capabilities.flatMap(({ skill, fragment }, at) => [
      [`contributes.capabilities[${at}].skill`, skill] as const,
      [`contributes.capabilities[${at}].fragment`, fragment] as const,
    ]),
  ]
  const [field, path] = paths.find(([, found]) => found !== undefined && !isInner(found)) ?? []
  return field && `${field}: expected a path inside the extension's folder, found ${JSON.stringify(path)}`
}

/** Whether a path stays in its folder, by its text. */
const isInner = (path: string): boolean =>
  path === '.'
  || (!/[\\\0]|^[a-zA-Z]:/.test(path)
    && path.split('/').every(segment => segment !== '' && segment !== '.' && segment !== '..'))

/**
 * The error in an entry: it is written in another way than its kind is, or names without wildcard a call that no
 * extension may make. One of `sandbox` whose kind is not known allows nothing, and is a problem of its record.
 */
const wrongPermission = (list: PermissionList, entry: string, at: number): string | undefined => {
  const found = readPermission(list, entry)
  const place = `permissions.${list}[${at}]`
  if ('expected' in found)
    return found.known || list === 'daemon'
      ? `${place}: expected ${found.expected}, found ${JSON.stringify(entry)}`
      : undefined
  return found.kind === 'route' && found.pattern.named && isTrustSurface(entry)
    ? `${place}: ${entry} is part of the trust surface, which no extension reaches`
    : undefined
}

const wrongSetting = (setting: ExtensionSetting, at: number): string | undefined => {
  const { type, secret, default: preset, enum: choices } = setting
  const place = `contributes.settings[${at}]`
  if (secret && type !== 'string') return `${place}.secret: expected type string, found ${type}`
  if (secret && preset !== undefined) return `${place}.default: a secret has none`
  if ((type === 'enum') !== (choices !== undefined && choices.length > 0))
    return `${place}.enum: expected choices exactly where the type is enum`
  return preset !== undefined && !isSettingValue(setting, preset) ? `${place}.default: expected ${type}` : undefined
}

/** Whether a value fits a setting. */
export const isSettingValue = ({ type, enum: choices }: ExtensionSetting, value: unknown): boolean =>
  type === 'enum' ? choices!.includes(value as string) : typeof value === type && value === value

const wrongTool = ({ input }: ExtensionTool, at: number): string | undefined => {
  const place = `contributes.tools[${at}].input`
  const text = JSON.stringify(input)
  if (input['type'] !== 'object') return `${place}.type: expected object`
  if (Buffer.byteLength(text) > MOST_SCHEMA) return `${place}: expected at most ${MOST_SCHEMA} bytes`
  return /"\$(?:ref|dynamicRef)":"[^#]/.test(text) ? `${place}: expected no reference to another document` : undefined
}

const wrongCard = ({ kind, env, skill, mcp, fields }: ExtensionCard, at: number): string | undefined => {
  const place = `contributes.capabilities[${at}]`
  if ((kind === 'cli') !== (env !== undefined)) return `${place}.env: expected exactly for kind cli`
  if (['cli', 'browser', 'host'].includes(kind) && skill === undefined)
    return `${place}.skill: expected for kind ${kind}`
  if ((kind === 'mcp') !== (mcp !== undefined)) return `${place}.mcp: expected exactly for kind mcp`
  const totp = fields.find(
    field => field.totp && Object.values(env ?? {}).some(text => text.includes(`\${${field.key}`)),
  )
  if (totp) return `${place}.env: ${totp.key} makes one-time codes and may not appear`
  const bad = Object.keys(env ?? {}).find(name => !/^[A-Z][A-Z0-9_]*$/.test(name))
  return bad === undefined ? undefined : `${place}.env: expected names such as API_TOKEN, found ${JSON.stringify(bad)}`
}
