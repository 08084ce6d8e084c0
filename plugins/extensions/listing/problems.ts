import type { GroupRoute } from '../../../sdk/kernel.js'
import type { RoutePattern } from '../../../sdk/node/extension/entries.js'
import { DOCUMENT_ENDINGS } from '../../../sdk/node/extension/document-endings.js'
import { permissionsOf, permissionsOfKind, readPermission } from '../../../sdk/node/extension/permission-kinds.js'
import { programNamed } from '../../../sdk/node/programs/installed-at.js'
import { splitWords } from '../../../sdk/node/programs/split-words.js'
import { isMeaningfulVariable } from '../../../sdk/node/programs/meaningful-variables.js'
import { isCondition } from '../manifest/condition.js'
import { HOST_API_VERSION } from '../manifest/engines.js'
import { hasBelow } from '../../../sdk/node/transport/code-folder.js'
import type { ExtensionContributions, ExtensionManifest, ExtensionTemplate } from '../manifest/manifest.js'
import { entryCovers } from '../manifest/route-entries.js'
import { isClosedRoute, isReachable, isWildReachable } from '../manifest/trust-surface.js'
import { readImageLines } from '../turns/image-lines.js'
import type { LoadedExtension } from './catalog.js'
import type { PageCalls } from './contract.js'

/** The capabilities of a daemon that decide about problems. */
export interface HonouringHost {
  readonly routes: readonly GroupRoute[]
  /** The extensions that are listed before this one and are used. */
  readonly earlier: readonly LoadedExtension[]
}

type Judged = Pick<LoadedExtension, 'manifest' | 'compatible' | 'engines' | 'folder' | 'dir'>

/** The declarations of a manifest that the sandbox does not support, as sentences. */
export const problemsOf = async (extension: Judged, host: HonouringHost): Promise<string[]> => {
  const { manifest, compatible, engines } = extension
  if (!compatible)
    return [`it is for host versions ${engines}; this one is ${HOST_API_VERSION}, so nothing of it is used`]
  const { permissions = {}, contributes = {} } = manifest
  return [
    ...(permissions.sandbox ?? []).flatMap(unknownProblem),
    ...(['sandbox', 'daemon'] as const)
      .flatMap(list => permissionsOfKind(permissionsOf(list, permissions[list]), 'route'))
      .flatMap(({ pattern }) => routeProblems(pattern, host.routes)),
    ...conditionProblems(contributes),
    ...(contributes.automationTemplates ?? []).flatMap(templateProblem),
    ...automationProblems(contributes, host.routes),
    ...takenProblems(contributes, host.earlier),
    ...(await processProblems(contributes)),
    ...variableProblems(contributes, host.earlier),
    ...(await programProblems(extension, host.earlier)),
    ...agentProblems(extension),
    ...(await imageProblems(extension)),
    ...cardProblems(contributes, host.earlier),
    ...documentProblems(manifest),
  ]
}

/** The calls that pages of an extension may make, by the entry that allows them. */
export const pageCallsOf = (
  { permissions: { sandbox = [] } = {} }: Pick<ExtensionManifest, 'permissions'>,
  routes: readonly GroupRoute[],
): PageCalls =>
  Object.fromEntries(
    permissionsOfKind(permissionsOf('sandbox', sandbox), 'route').map(({ entry, pattern }) => [
      entry,
      reachedBy(pattern, routes).map(({ call }) => call),
    ]),
  )

const reachedBy = (pattern: RoutePattern, routes: readonly GroupRoute[]): GroupRoute[] =>
  routes.filter(route => entryCovers(pattern, route.call) && (pattern.named ? isReachable : isWildReachable)(route))

/** An entry of no known kind allows nothing. */
const unknownProblem = (entry: string, at: number): string[] => {
  const found = readPermission('sandbox', entry)
  return 'expected' in found
    ? [`permissions.sandbox[${at}] allows nothing: expected ${found.expected}, found ${JSON.stringify(entry)}`]
    : []
}

const routeProblems = (pattern: RoutePattern, routes: readonly GroupRoute[]): string[] => {
  const { entry } = pattern
  const covered = routes.filter(({ call }) => entryCovers(pattern, call))
  if (covered.length === 0) return [`${entry} matches no route of this daemon`]
  if (reachedBy(pattern, covered).length === 0)
    return [`${entry} matches only routes that no extension reaches this way`]
  const cut = covered.filter(isClosedRoute).map(({ call }) => call)
  return cut.length > 0 ? [`${entry} does not reach ${cut.slice(0, 3).join(', ')}: no extension does`] : []
}

const conditionProblems = ({ sideViews = [], commands = [], capabilities = [] }: ExtensionContributions): string[] =>
  [
    ...sideViews.map(({ id, when }) => ({ name: `the panel ${id}`, when })),
    ...commands.map(({ command, when }) => ({ name: `the command ${command}`, when })),
    ...capabilities.flatMap(({ id, fields }) =>
      fields.map(({ key, when }) => ({ name: `the field ${key} of ${id}`, when })),
    ),
  ].flatMap(({ name, when }) =>
    when === undefined || isCondition(when) ? [] : [`the condition of ${name} cannot be read: ${when}`],
  )

const NEEDED = { schedule: 'cron', listener: 'provider', workspace: 'event' } as const

const templateProblem = ({ id, trigger }: ExtensionTemplate): string[] => {
  const needed = trigger.kind === 'event' ? undefined : NEEDED[trigger.kind]
  return needed !== undefined && trigger[needed] === undefined ? [`the automation ${id} lacks trigger.${needed}`] : []
}

/** What a manifest contributes to automations does nothing where no group serves them. */
const automationProblems = (
  { listener, automationTemplates = [] }: ExtensionContributions,
  routes: readonly GroupRoute[],
): string[] => {
  if (routes.some(({ call }) => /^\w+ \/automations(?:\/|$)/.test(call))) return []
  return [
    ...(listener ? [`its messages of ${listener.provider} start nothing: this sandbox has no automations`] : []),
    ...(automationTemplates.length > 0 ? ['its automations are not offered: this sandbox has none'] : []),
  ]
}

/** Names that an extension before this one took. */
const takenProblems = (
  { tools = [], commands = [], viewers = [], documents = [] }: ExtensionContributions,
  earlier: readonly LoadedExtension[],
): string[] => {
  const takenBy = (owns: (contributes: ExtensionContributions) => boolean) =>
    earlier.find(({ manifest }) => owns(manifest.contributes ?? {}))?.id
  const shown = (what: string, owner: string | undefined) =>
    owner === undefined ? [] : [`${what} belongs to ${owner}`]
  return [
    ...tools.flatMap(({ name }) =>
      shown(
        `the tool ${name}`,
        takenBy(each => (each.tools ?? []).some(tool => tool.name === name)),
      ),
    ),
    ...commands.flatMap(({ keybinding }) =>
      keybinding === undefined
        ? []
        : shown(
            `the keys ${keybinding}`,
            takenBy(each => (each.commands ?? []).some(command => command.keybinding === keybinding)),
          ),
    ),
    ...viewers.flatMap(({ extensions }) =>
      extensions.flatMap(type =>
        shown(
          `the file type ${type}`,
          takenBy(each => (each.viewers ?? []).some(viewer => viewer.extensions.includes(type))),
        ),
      ),
    ),
    ...documents.flatMap(({ extensions = [] }) =>
      extensions.flatMap(type =>
        shown(
          `the text of the file type ${type}`,
          takenBy(each => (each.documents ?? []).some(document => document.extensions?.includes(type))),
        ),
      ),
    ),
  ]
}

const processProblems = async ({ processes = [] }: ExtensionContributions): Promise<string[]> => {
  const found: string[] = []
  for (const { name, command } of processes) {
    const [program = ''] = splitWords(command) ?? []
    if (program === '') found.push(`the command of ${name} cannot be read: a quote is not closed`)
    else if (!program.includes('/') && (await programNamed(program)) === undefined)
      found.push(`the program ${program} of ${name} is not installed`)
  }
  return found
}

/** Variables of the agent's shell that are not set. */
const variableProblems = ({ settings = [] }: ExtensionContributions, earlier: readonly LoadedExtension[]): string[] =>
  settings.flatMap(({ key, env }) => {
    if (env === undefined) return []
    if (isMeaningfulVariable(env))
      return [`its setting ${key} is not put into ${env}: programs or the sandbox use that`]
    const other = earlier.find(({ manifest }) => manifest.contributes?.settings?.some(each => each.env === env))
    return other ? [`the variable ${env} of its setting ${key} belongs to ${other.id}`] : []
  })

/** The programs in a folder for the agent's PATH, by name. */
const programsOf = ({ manifest, folder }: Pick<LoadedExtension, 'manifest' | 'folder'>): string[] => {
  const { bin } = manifest.contributes ?? {}
  if (bin === undefined) return []
  const prefix = bin === '.' ? '' : `${bin.replace(/\/$/, '')}/`
  return [...folder.files.keys()].flatMap(path => {
    const name = path.startsWith(prefix) ? path.slice(prefix.length) : ''
    return name === '' || name.includes('/') ? [] : [name]
  })
}

/** Programs of the agent's PATH that are not reached by their name. */
const programProblems = async (extension: Judged, earlier: readonly LoadedExtension[]): Promise<string[]> => {
  const { bin } = extension.manifest.contributes ?? {}
  if (bin === undefined) return []
  const programs = programsOf(extension)
  if (programs.length === 0) return [`its folder of programs ${bin} has no files`]
  const found = await Promise.all(
    programs.map(async name => {
      if ((await programNamed(name)) !== undefined) return [`its program ${name} is not reached: the system has one`]
      const other = earlier.find(each => programsOf(each).includes(name))
      return other ? [`its program ${name} is not reached: ${other.id} has one`] : []
    }),
  )
  return found.flat()
}

/** Lines for the image that are not in it, or that turns do not get. */
const imageProblems = async ({ manifest, dir, folder }: Judged): Promise<string[]> => {
  const { environment, capabilities = [] } = manifest.contributes ?? {}
  const paths = [environment?.fragment, ...capabilities.map(({ fragment }) => fragment)]
  const found = await Promise.all(
    [...new Set(paths)].map(async path => {
      if (path === undefined) return []
      const lines = folder.files.has(path) ? await readImageLines(dir, path) : undefined
      return lines?.problems ?? [`its lines for the image, ${path}, cannot be read`]
    }),
  )
  return found.flat()
}

/** Cards that are not offered: of a kind that is not connected here, or with the id of another one. */
const cardProblems = ({ capabilities = [] }: ExtensionContributions, earlier: readonly LoadedExtension[]): string[] =>
  capabilities.flatMap(({ id, kind }) => {
    if (kind === 'host') return [`its connection ${id} is not offered: this sandbox connects no computers`]
    const other = earlier.find(({ manifest }) => manifest.contributes?.capabilities?.some(card => card.id === id))
    return other ? [`its connection ${id} is not offered: ${other.id} has one of that id`] : []
  })

/** Documents that derive nothing. */
const documentProblems = ({ server, contributes = {} }: ExtensionManifest): string[] =>
  (contributes.documents ?? []).flatMap(({ id, extensions }) => {
    if (!extensions) return [`its documents ${id} derive nothing: expected extensions, the endings of their files`]
    if (server === undefined) return [`its documents ${id} derive nothing: only a server derives texts`]
    return extensions.flatMap(type =>
      Object.hasOwn(DOCUMENT_ENDINGS, type)
        ? [`the text of the file type ${type} is derived by the sandbox itself`]
        : [],
    )
  })

const agentProblems = ({ manifest, folder }: Judged): string[] => {
  const { agent } = manifest.contributes ?? {}
  if (!agent || hasBelow(folder, agent.path ?? '.')) return []
  return [`its agent folder ${agent.path} has no files`]
}
