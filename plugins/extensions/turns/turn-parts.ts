import { existsSync } from 'node:fs'
import { posix } from 'node:path'
import type { Handlers, Host } from '../../../sdk/index.js'
import { isMeaningfulVariable } from '../../../sdk/node/programs/meaningful-variables.js'
import { wallKind } from '../../../sdk/node/wall/wall.js'
import { AGENT_HOOKS, type LoadedExtension } from '../listing/catalog.js'
import type { LoadedExtensions } from '../listing/loaded-extensions.js'
import { hasBelow } from '../../../sdk/node/transport/code-folder.js'
import { textBelow } from '../../../sdk/node/files/real-folders.js'
import type { AgentFolder } from '../../capabilities/contract.js'
import { readImageLines } from './image-lines.js'
import type { ExtensionTurnCalls, TurnExtensions } from './contract.js'

/** Where programs of a turn see the code of extensions, each in a folder named by its id. */
const FOLDER = '/run/sandbox-extensions'
const MOST_SKILL = 256 * 1024

/** The folder in which programs of a turn see the code of an extension; without a wall they see the machine's. */
const seenAt = async ({ id, dir }: Pick<LoadedExtension, 'id' | 'dir'>): Promise<string> =>
  (await wallKind()) === 'none' ? dir : posix.join(FOLDER, id)

/** Hooks and tool servers run by themselves, so they must be approved as they are on the disk now. */
const hasApprovedHooks = ({ dir, manifest, powers }: LoadedExtension): boolean =>
  powers.some(({ key }) => key === 'agent-hooks')
  || !AGENT_HOOKS.some(name => existsSync(posix.join(dir, manifest.contributes?.agent?.path ?? '.', name)))

const agentFolderOf = async (found: LoadedExtension): Promise<AgentFolder[]> => {
  const { agent } = found.manifest.contributes ?? {}
  if (!agent || !hasApprovedHooks(found)) return []
  const { path = '.' } = agent
  return [{ id: found.id, dir: posix.join(found.dir, path), seen: posix.join(await seenAt(found), path) }]
}

/** The text of a skill: a file, or the one of that name in a folder. */
const skillText = async (dir: string, path: string): Promise<string | undefined> =>
  (await textBelow(dir, path, MOST_SKILL)) ?? textBelow(dir, `${path}/SKILL.md`, MOST_SKILL)

/** The settings of an extension that the shell of agents gets, by the name of the variable. */
const variablesOf = async (
  host: Pick<Host, 'call' | 'serves'>,
  all: LoadedExtensions,
  { id, manifest }: LoadedExtension,
): Promise<[name: string, value: string][]> => {
  const declared = (manifest.contributes?.settings ?? []).filter(
    ({ env }) => env !== undefined && !isMeaningfulVariable(env),
  )
  if (declared.length === 0) return []
  const { settings, secretsSet } = await all.values.of(id, manifest)
  const found = await Promise.all(
    declared.map(async ({ key, env, secret }) => {
      if (!secret) return [env!, settings[key]] as const
      if (!secretsSet.includes(key)) return [env!, undefined] as const
      return [env!, (await host.call('secrets.get', { name: `ext/${id}/${key}` })).value] as const
    }),
  )
  return found.flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
}

/** Serves what extensions add to turns: only those that may run now, and that the persona of the turn allows. */
export const extensionTurnCalls = (host: Host, all: LoadedExtensions): Handlers<ExtensionTurnCalls> => {
  const running = async (allowed: readonly string[] | undefined): Promise<LoadedExtension[]> => {
    await all.refresh()
    return [...all.catalog.loaded.keys()].flatMap(id =>
      allowed && !allowed.includes(id) ? [] : (all.runnable(id) ?? []),
    )
  }
  const foldersOf = async (found: readonly LoadedExtension[]) => (await Promise.all(found.map(agentFolderOf))).flat()
  return {
    'extensions.forTurn': async ({ extensions }) => {
      const found = await running(extensions)
      const agents = await foldersOf(found)
      const turn: TurnExtensions = { variables: {}, files: [], path: [], agents }
      for (const each of found) {
        const { bin } = each.manifest.contributes ?? {}
        const hasPrograms = bin !== undefined && hasBelow(each.folder, bin)
        const at = await seenAt(each)
        if (hasPrograms) turn.path.push(posix.join(at, bin))
        if (at !== each.dir && (hasPrograms || agents.some(({ id }) => id === each.id)))
          turn.files.push({ from: each.dir, to: at })
        const { environment } = each.manifest.contributes ?? {}
        const lines = environment && (await readImageLines(each.dir, environment.fragment))
        const own = [...(await variablesOf(host, all, each)), ...Object.entries(lines?.variables ?? {})]
        for (const [name, value] of own) turn.variables[name] ??= value
      }
      return turn
    },
    'extensions.agentFolders': async ({ extensions }) => ({ folders: await foldersOf(await running(extensions)) }),
    'extensions.cards': async () => {
      const found = await running(undefined)
      const cards = await Promise.all(
        found.flatMap(({ id, dir, manifest }) =>
          (manifest.contributes?.capabilities ?? []).map(async card => {
            const skill = card.skill === undefined ? undefined : await skillText(dir, card.skill)
            return { extension: id, card: structuredClone(card), ...(skill !== undefined && { skill }) }
          }),
        ),
      )
      return { cards: [...new Map(cards.toReversed().map(each => [each.card.id, each])).values()].toReversed() }
    },
    'extensions.ids': async () => {
      await all.refresh()
      return { ids: [...all.catalog.loaded.keys()] }
    },
  }
}
