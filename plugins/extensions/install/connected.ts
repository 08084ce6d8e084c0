import { lineArt } from '../../../sdk/node/line-art.js'
import { refuse, type Context, type Handlers } from '../../../sdk/index.js'
import type { CapabilityStatus, KindEntry, KindStep, StoredKind } from '../../capabilities/contract.js'
import { powersDigest } from '../powers/compared.js'
import type { KeptExtension } from '../records/kept-extension.js'
import { removalPlan, removeExtension } from '../removal/removal.js'
import type { ExtensionUpdates } from '../update/updates.js'
import type { ConnectedExtensionCalls, InstallSource } from './contract.js'
import { installExtension, type InstallDeps } from './installing.js'

/** The kind of connections that installs an extension: `POST /extensions/install` under an id of its own. */
export const EXTENSION_KIND: StoredKind = {
  storedBy: 'capabilities',
  kind: 'extension',
  card: {
    name: 'Extension',
    category: 'tools',
    description: 'Pages, tools and connections from a repository at one commit, in a process of its own.',
    hint: 'Leave the digest empty first: the answer lists what it may do, and the digest that allows exactly that.',
    art: lineArt('M4 4h7v7H4z', 'M13 13h7v7h-7z', 'M4 13h7v7H4z', 'M16.5 4v7', 'M13 7.5h7'),
    guide: {
      steps: [
        'Read the repository, and copy the whole commit that you read: git rev-parse HEAD shows it.',
        'Connect it once without a digest, and read what it asks for.',
        'If that is fine, copy the digest of the answer into the form, and connect it again.',
      ],
    },
    fields: [
      { key: 'url', label: 'Repository', placeholder: 'https://git.example.org/team/extension.git' },
      { key: 'ref', label: 'Commit', placeholder: '40 hexadecimal digits' },
      { key: 'path', label: 'Folder in it', optional: true },
      { key: 'token', label: 'Access token', secret: true, optional: true },
      { key: 'registry', label: 'Index that lists it', optional: true },
      { key: 'digest', label: 'Digest of what it may do', optional: true },
    ],
  },
  mainSecret: 'token',
  applyMs: 600_000,
  calls: {
    check: 'extensions.kindCheck',
    apply: 'extensions.kindApply',
    status: 'extensions.kindStatus',
    release: 'extensions.kindRelease',
    forget: 'extensions.kindForget',
    rename: 'extensions.kindRename',
  },
}

interface ConnectedDeps {
  readonly install: InstallDeps
  readonly updates: () => ExtensionUpdates
}

const text = (config: KindEntry['config'], field: string): string | undefined =>
  config[field] === undefined ? undefined : String(config[field])

const sourceOf = ({ config, secrets }: KindEntry): InstallSource & { token?: string; digest: string } => {
  const { token } = secrets
  const [path, registry] = [text(config, 'path'), text(config, 'registry')]
  return {
    ...{ url: text(config, 'url') ?? '', ref: text(config, 'ref') ?? '', digest: text(config, 'digest') ?? '' },
    ...(path !== undefined && { path }),
    ...(registry !== undefined && { registry }),
    ...(token !== undefined && { token }),
  }
}

/** Serves the connections of kind `extension`. */
export const connectedExtensions = ({ install, updates }: ConnectedDeps): Handlers<ConnectedExtensionCalls> => {
  const { all, staging } = install
  const { host } = all
  const of = async (link: string): Promise<KeptExtension | undefined> => {
    await all.load()
    return all.kept.all().find(({ installed, removing }) => installed?.link === link && !removing)
  }
  const updating = (id: string) => updates().isRunning(id)
  const isRecorded = async (link: string): Promise<boolean> => {
    const { capabilities } = await host.call('capabilities.records', { kind: EXTENSION_KIND.kind, waiting: true })
    return capabilities.some(({ id }) => id === link)
  }

  async function* applied(given: KindEntry, context: Context): AsyncGenerator<KindStep> {
    const { digest, ...source } = sourceOf(given)
    const before = await of(given.id)
    yield { kind: 'log', message: `fetching ${source.url} at ${source.ref.slice(0, 12)}; nothing of it runs` }
    const staged = await staging.fetch(source)
    const { id, powers } = staged
    await staging.drop(staged.root)
    const expected = powersDigest(id, powers)
    if (digest !== expected)
      refuse(
        'conflict',
        `${id} is installed with the digest of its powers alone, ${expected}: `
          + (powers.length > 0 ? powers.map(power => power.text).join('; ') : 'it has none'),
      )
    if (before) yield* changed(before, given, id, context)
    else
      for await (const step of await installExtension(install, { ...source, digest, link: given.id }, context))
        if (step.kind === 'log') yield step
    yield { kind: 'log', message: `${id} may: ${powers.map(power => power.text).join('; ') || 'nothing'}` }
    yield { kind: 'status', status: statusOf(await of(given.id)) }
  }

  async function* changed(
    { id, installed }: KeptExtension,
    given: KindEntry,
    found: string,
    context: Context,
  ): AsyncGenerator<KindStep> {
    const { url, ref, path, registry, digest } = sourceOf(given)
    const kept = installed!
    if (found !== id || url !== kept.url || path !== kept.path || registry !== kept.registry)
      refuse('conflict', `${given.id} is ${id} of ${kept.url}: disconnect it, and connect the other one anew`)
    if (ref === kept.current.ref) return
    yield { kind: 'log', message: `updating ${id} from ${kept.current.ref.slice(0, 12)}` }
    await updates().apply(id, { ref, digest }, context)
  }

  const statusOf = (kept: KeptExtension | undefined): CapabilityStatus => {
    const checkedAt = Date.now()
    if (!kept)
      return {
        state: 'inactive',
        code: 'missing-extension',
        detail: 'its extension is not installed any more',
        checkedAt,
      }
    const { id } = kept
    const refused = all.refused(id)
    if (refused === 'off')
      return { state: 'inactive', code: 'switched-off', detail: `${id} is switched off`, checkedAt }
    if (refused === 'pending') return { state: 'pending', detail: `${id} waits for approval`, checkedAt }
    if (refused !== undefined)
      return { state: 'error', detail: `${id} cannot be used: GET /extensions says why`, checkedAt }
    const backend = all.backendOf(all.get(id))
    if (!backend || backend.state === 'running') return { state: 'active', checkedAt }
    const detail = backend.detail ?? `its backend is ${backend.state}`
    return backend.state === 'starting'
      ? { state: 'pending', code: 'starting', detail, checkedAt }
      : { state: 'error', code: 'crashed', detail, checkedAt }
  }

  return {
    'extensions.kindCheck': async ({ id, config, secrets }) => {
      if (!/^[0-9a-f]{40}$/.test(text(config, 'ref') ?? ''))
        refuse(
          'invalid',
          'config.ref: expected the full id of a commit, 40 hexadecimal digits: a branch or tag may move',
        )
      if (secrets.token !== undefined && !/^https:/i.test(text(config, 'url') ?? ''))
        refuse('invalid', 'config.token: expected only with an https address')
      // Taking back what fails would remove what was there before.
      const kept = await of(id)
      if (kept && !(await isRecorded(id)))
        refuse(
          'conflict',
          `${kept.id} is installed under the name ${id}, whose entry is gone from the file of connections: `
            + `put the entry back, or remove the extension first (POST /extensions/${kept.id}/remove)`,
        )
      return { ok: true }
    },
    'extensions.kindApply': (given, context) => applied(given, context),
    'extensions.kindStatus': async ({ id }) => statusOf(await of(id)),
    'extensions.kindRelease': async ({ id }) => {
      const kept = await of(id)
      const { blocked } = kept ? await removalPlan(all, kept.id, updating) : {}
      if (blocked !== undefined) refuse('conflict', blocked)
      return { ok: true }
    },
    'extensions.kindForget': async ({ id }, context) => {
      const kept = await of(id)
      if (kept) await removeExtension(all, kept.id, updating, context)
      return { ok: true }
    },
    'extensions.kindRename': async ({ id, to }) => {
      const kept = await of(id)
      if (kept)
        await all.turns.with(kept.id, async () => {
          const now = all.kept.get(kept.id)
          if (now?.installed) await all.keep({ ...now, installed: { ...now.installed, link: to } })
        })
      return { ok: true }
    },
  }
}
