import { lstat, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, Refusal, type Context, type Handlers, type Host } from '../../../sdk/index.js'
import { kindOfEntry, secretsOf } from '../../../sdk/node/deploy/entries.js'
import { DEPLOY_KINDS } from '../../../sdk/node/deploy/kinds.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import type { CapabilityStatus, KindEntry, KindStep } from '../../capabilities/contract.js'
import type { InventoryBackend } from '../contract.js'
import type { Inventory } from '../inventory.js'
import type { InventoryKindCalls } from './contract.js'
import { entryNameOf, kindStatus, optionValues } from './entry-values.js'
import { serviceKindCalls } from './service.js'

const REPOSITORIES = ['intent', 'desired-state'] as const
const OK = { ok: true } as const

const asJson = (value: object): string => `${JSON.stringify(value, undefined, 2)}\n`

/** The files of a new repository of packages. */
const MONOREPO: { readonly [path: string]: (name: string) => string } = {
  'package.json': name => asJson({ name: name.toLowerCase(), private: true, workspaces: ['apps/*', 'packages/*'] }),
  '.gitignore': () => 'node_modules/\ndist/\n.env\n',
  'README.md': name => `# ${name}\n\nApps are in \`apps/\`, what they share in \`packages/\`.\n`,
}

const isOwn = async (path: string, text: string | undefined): Promise<boolean> =>
  text !== undefined
  && ((await lstat(path).catch(() => undefined))?.isFile() ?? false)
  && (await readFile(path, 'utf8')) === text

/** The entry that a connection describes. */
const entryOf = ({ id, config }: Pick<KindEntry, 'id' | 'config'>): InventoryBackend => {
  const { provider, ...options } = config
  const known = DEPLOY_KINDS.find(each => each.kind === 'backend' && each.id === provider)
  return {
    kind: 'backend',
    provider: String(provider ?? ''),
    name: entryNameOf(id),
    values: optionValues(known, options),
  }
}

/** Serves the kinds `devops`, `monorepo`, `integration` and `service`. */
export const inventoryKindCalls = (
  host: Pick<Host, 'call' | 'serves' | 'place'>,
  inventory: Inventory,
): Handlers<InventoryKindCalls> => {
  const isRepository = async (path: string): Promise<boolean> =>
    (await lstat(join(host.place.workspace, path, '.git')).catch(() => undefined)) !== undefined
  /** Whether a folder has nothing but what an earlier attempt wrote into it, or is not there. */
  const isFree = async (id: string): Promise<boolean> => {
    const at = join(host.place.workspace, id)
    if (!(await lstat(at).catch(() => undefined))) return true
    const names = await readdir(at).catch(() => undefined)
    if (!names) return false
    const own = await Promise.all(names.map(name => isOwn(join(at, name), MONOREPO[name]?.(id))))
    return names.length > 0 && own.every(Boolean)
  }

  const make = async (path: string, context: Context): Promise<string> => {
    if (await isRepository(path)) return `${path} is there already`
    await host.call('POST /workspace/repos/init', { path }, { as: context })
    failpoint('inventory.repository.made')
    return `made the repository ${path}`
  }

  const hostStatus = async (id: string, context: Context): Promise<CapabilityStatus> => {
    const list = await inventory.list(context).catch((error: unknown) => {
      if (error instanceof Refusal) return kindStatus('error', error.message)
      throw error
    })
    if ('state' in list) return list
    const { ready, entries } = list
    const entry = entries.find(({ name }) => name === id)
    if (!ready || entry?.kind !== 'backend') return kindStatus('error', `the inventory has no machine ${id}`)
    const required = kindOfEntry(entry) ? secretsOf(entry).filter(each => each.required) : []
    const missing = required.filter(({ key }) => entry.secrets.every(each => each.key !== key || !each.set))
    if (missing.length === 0) return kindStatus('active')
    return kindStatus('pending', `store its ${missing[0]!.option} among the secrets as ${missing[0]!.key}`)
  }

  return {
    ...serviceKindCalls(host, inventory),
    'inventory.devops.check': () => OK,
    async *'inventory.devops.apply'(_, context): AsyncGenerator<KindStep> {
      for (const path of REPOSITORIES) yield { kind: 'log', message: await make(path, context) }
      await inventory.changed()
      yield { kind: 'status', status: kindStatus('active') }
    },
    'inventory.devops.status': async () => {
      for (const path of REPOSITORIES)
        if (!(await isRepository(path))) return kindStatus('error', `the repository ${path} is gone: connect it again`)
      return kindStatus('active')
    },
    'inventory.monorepo.check': async ({ id }) => {
      if (!(await isRepository(id)) && !(await isFree(id)))
        refuse('conflict', `${id} is a folder of the workspace already: choose another id`)
      return OK
    },
    async *'inventory.monorepo.apply'({ id }, context): AsyncGenerator<KindStep> {
      if (!(await isRepository(id))) {
        for (const [path, text] of Object.entries(MONOREPO)) {
          if (await isOwn(join(host.place.workspace, id, path), text(id))) continue
          const file = { path: `${id}/${path}`, content: text(id), baseHash: 'absent' }
          await host.call('PUT /workspace/file', file, { as: context })
        }
        failpoint('inventory.monorepo.written')
      }
      yield { kind: 'log', message: await make(id, context) }
      yield { kind: 'status', status: kindStatus('active') }
    },
    'inventory.monorepo.status': async ({ id }) =>
      (await isRepository(id)) ? kindStatus('active') : kindStatus('error', `the repository ${id} is gone`),
    'inventory.integration.check': async (given, context) => {
      await inventory.check(entryOf(given), context)
      return OK
    },
    async *'inventory.integration.apply'(given, context): AsyncGenerator<KindStep> {
      const { commit } = await inventory.put(entryOf(given), context)
      yield {
        kind: 'log',
        message: `the inventory has ${given.id}${commit === undefined ? '' : ` (${commit.slice(0, 10)})`}`,
      }
      yield { kind: 'status', status: await hostStatus(given.id, context) }
    },
    'inventory.integration.status': ({ id }, context) => hostStatus(id, context),
    'inventory.integration.release': async ({ id }, context) => {
      const { entries } = await inventory.list(context)
      // Without its repository there is nothing to take out, and an entry of another kind is not its own.
      if (entries.some(({ name, kind }) => name === id && kind === 'backend')) await inventory.remove(id, context)
      return OK
    },
    'inventory.keep': ({ id }) =>
      refuse('conflict', `${id} cannot be removed: repositories of the workspace stay, remove them by hand`),
    'inventory.forget': () => OK,
    'inventory.rename': ({ id, to }) =>
      id === to ? OK : refuse('conflict', `${id} cannot be renamed: its id is the name of what it made`),
  }
}
