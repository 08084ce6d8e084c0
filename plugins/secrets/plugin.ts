import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Context, type Contract, type Host, refuse } from '../../sdk/index.js'
import { Failures } from '../../sdk/node/access/failures.js'
import { record } from '../../sdk/node/record/record.js'
import { isBoundTo } from '../../sdk/node/network/bound-traffic.js'
import { Announcing } from './announcing.js'
import { isBound } from './binding.js'
import { CiPushes } from './ci/push.js'
import { checkValue, imported, renamed, set, stillLate, withSecret, without, type Imported } from './changes.js'
import {
  secrets,
  type MaskedValues,
  type SecretAtHost,
  type SecretsCalls,
  type SecretText,
  type SecretUser,
  type StoredAnswer,
} from './contract.js'
import { envSource } from './env/env-source.js'
import { examples } from './examples.js'
import { generated } from './generating.js'
import { gitSecret } from './git-secret.js'
import { heldByProvider, inventory } from './inventory.js'
import { systemKeyring } from './vault/keyring.js'
import type { StoreChange } from './open-store.js'
import { maskedValues } from './masked-values.js'
import { SecretMounts } from './mounts.js'
import { referencedNames } from './references.js'
import { resolved, usable } from './resolving.js'
import { SecretStore, WrongPassphrase } from './secret-store.js'
import { checkChoice, storePlace, storeState } from './store-state.js'
import { UseLog } from './use-log.js'
import type { VaultContent } from './vault/vault.js'
import { VaultKeys } from './vault/vault-keys.js'

export const contract: Contract<SecretsCalls> = { ...secrets, examples }

const MINUTE = 60_000
const MOST_REVEALED = 20
const MOST_WRONG = 10
const MOST_DETAIL = 80

/** Keeps the values that agents use by reference. */
export const activate = async (host: Host): Promise<void> => {
  const { folder, workspace } = host.place
  const keys = new VaultKeys(folder, systemKeyring())
  const announcing = new Announcing(host)
  const uses = new UseLog(host.journal)
  const reveals = new Failures(MOST_REVEALED, MINUTE, () => Date.now())
  const wrong = new Failures(MOST_WRONG, 10 * MINUTE, () => Date.now())
  let revision = Date.now()
  let late = 0

  const values = async (): Promise<MaskedValues> => {
    const content = store.locked === undefined ? await store.content() : { secrets: [], replaced: [] }
    const replaced = stillLate(content, Date.now())
    if (replaced.length !== late) revision += 1
    late = replaced.length
    const masked = replaced.map(each => ({
      kind: each.name.includes('/') ? ('field' as const) : ('env' as const),
      ...each,
    }))
    return { values: [...content.secrets, ...masked].flatMap(maskedValues), revision }
  }
  const changed = async ({ set: kept, removed }: StoreChange): Promise<void> => {
    revision += 1
    const masked = await values()
    await host.call('kernel.redact.values', { values: masked.values })
    await mounts.refresh([...kept, ...removed])
    for (const key of kept) host.emit('secret.set', { key })
    for (const key of removed) host.emit('secret.removed', { key })
    const [one, ...more] = [...kept, ...removed]
    announcing.changed(more.length === 0 ? one : undefined)
  }
  const store = new SecretStore({ folder, workspace, files: host.files, keys, changed })
  const mounts = new SecretMounts(folder, async () => (await store.content()).secrets)
  host.boot('Secrets', async () => {
    await mounts.sweep()
    await store.start()
  })

  const connected = async () =>
    (await host.serves('capabilities.records')) ? (await host.call('capabilities.records', {})).capabilities : []
  // A folder of a process that was not removed in time would stay with its files.
  host.stopping(() => mounts.sweep())
  const pushes = new CiPushes({ host, content: () => store.content(), connected })
  const told = (type: string, context: Context, extra: { [field: string]: unknown }) =>
    record(host, { type: `secret.${type}`, outcome: 'ok', extra }, context)

  /** Stores values; the first one makes the store, which is recorded. */
  const kept = async (work: (content: VaultContent) => VaultContent, context: Context): Promise<StoredAnswer> => {
    if (!(await store.change(work))) return { ok: true }
    await told('store', context, { kind: 'vault', unlock: 'file', moved: 0 })
    return { ok: true, store: 'made' }
  }

  const resolve = async (input: SecretText, way: 'text' | 'shell', { caller }: Context) => {
    const names = referencedNames(input.text)
    if (names.length === 0) return { text: input.text }
    if (store.locked !== undefined) return { refused: store.locked }
    const fields = names.some(name => name.includes('/')) ? await connected() : []
    const known = usable((await store.content()).secrets, input, fields)
    const { answer, used } = resolved(input, way, known)
    await noted(used, input, caller)
    return answer
  }

  const noted = async (names: readonly string[], user: SecretUser, caller: Context['caller']): Promise<void> => {
    if (names.length === 0) return
    const { lane, detail, conversationId } = user
    const use = {
      at: Date.now(),
      lane,
      detail: [...detail].slice(0, MOST_DETAIL).join(''),
      ...(conversationId !== undefined && { conversationId }),
      by: conversationId === undefined ? caller.actor : `conversation:${conversationId}`,
    }
    await uses.note(names.map(name => ({ ...use, name })))
    announcing.used()
  }

  /** The value as it is now: what was removed, or bound otherwise, does not go on. */
  const atHost = async (input: SecretAtHost, { caller }: Context): Promise<{ value?: string }> => {
    if (store.locked !== undefined) return {}
    const found = usable((await store.content()).secrets, input, []).get(input.name)
    if (!found || !isBoundTo(found.hosts ?? [], input.host)) return {}
    if (!input.noted) await noted([input.name], input, caller)
    return { value: found.value }
  }

  const reveal = async (key: string, field: string | undefined): Promise<string> => {
    const all = (await store.content()).secrets
    const plain = all.find(({ name, kind }) => name === key && kind !== 'field')
    if (plain && field === undefined) return plain.value
    const [owner, ...rest] = key.split('/')
    const capability = (await connected()).find(({ id }) => id === owner)
    const name = `${owner}/${field ?? (rest.join('/') || capability?.secrets[0])}`
    const found = all.find(each => each.name === name)
    if (found && !capability) refuse('conflict', `${key} is not for people: its value is used where it belongs only`)
    return found?.value ?? refuse('not-found', `no secret is named ${field === undefined ? key : name}`)
  }

  await host.serve(secrets, {
    'POST /secrets': async (given, context) => {
      checkValue(given.value)
      const answer = await kept(content => set(content, given, Date.now()), context)
      await told('set', context, { key: given.key })
      return answer
    },
    'GET /secrets': async () => ({ keys: await plainNames(store) }),
    'DELETE /secrets/{key}': async ({ key }, context) => {
      // What is not there needs no store that is open.
      if (!(await plainNames(store)).includes(key)) return { ok: true as const, removed: false }
      await store.change(content => without(content, name => name === key, Date.now()))
      await told('removed', context, { key })
      return { ok: true as const, removed: true }
    },
    'GET /secrets/inventory': async () => {
      const [known, capabilities, last, required] = await Promise.all([
        store.known(),
        connected(),
        uses.last(),
        host.collect('secrets.required'),
      ])
      const accounts = (await host.serves('accounts.inventory')) ? await host.call('accounts.inventory') : undefined
      const place = storePlace(store)
      const ci = store.locked === undefined ? await pushes.states((await store.content()).secrets) : new Map()
      return {
        entries: [
          ...inventory({ known, connected: capabilities, required: required.flat(), uses: last, place, ci }),
          ...(accounts?.credentials ?? []).map(heldByProvider),
        ],
      }
    },
    'POST /secrets/reveal': async ({ key, field }, context) => {
      const wait = reveals.wait('')
      if (wait !== undefined)
        refuse('too-many', `expected at most ${MOST_REVEALED} in a minute; ask again in ${wait} s`, {
          retryAfter: wait,
        })
      reveals.add('')
      const value = await reveal(key, field)
      await told('revealed', context, { key, ...(field !== undefined && { field }) })
      return { value }
    },
    'GET /secrets/store': () => storeState(store, keys, workspace),
    'POST /secrets/store': async (config, context) => {
      checkChoice(config)
      const wait = wrong.wait('')
      if (wait !== undefined && config.kind === 'vault' && config.unlock === 'passphrase' && store.locked !== undefined)
        refuse('too-many', `${MOST_WRONG} wrong passphrases: ask again in ${wait} s`, { retryAfter: wait })
      const moved = await store.choose(config).catch(error => {
        if (error instanceof WrongPassphrase) wrong.add('')
        throw error
      })
      const where = config.kind === 'vault' ? { unlock: config.unlock } : { path: config.path }
      await told('store', context, { kind: config.kind, ...where, moved })
      return { ok: true as const, moved }
    },
    'POST /secrets/generate': async ({ key, recipe, replace }, context) => {
      const { value, publicKey } = generated(recipe)
      let rotated = false
      const work = (content: VaultContent) => {
        const before = content.secrets.find(({ name }) => name === key)
        if (before && !replace) refuse('conflict', `${key} is stored already: pass replace to make a new value for it`)
        rotated = before !== undefined
        return withSecret(content, { ...before, name: key, kind: 'generated', value, at: Date.now() }, Date.now())
      }
      const answer = await kept(work, context)
      await told('generated', context, { key, rotated })
      return { ...answer, rotated, ...(publicKey !== undefined && { publicKey }) }
    },
    'POST /secrets/import': async ({ text, path, ...how }, context) => {
      if ((text === undefined) === (path === undefined))
        refuse('invalid', `expected one of text and path, found ${text === undefined ? 'neither' : 'both'}`, {
          errors: [{ path: 'text', expected: 'text, or path in its place' }],
        })
      const given = text ?? (await envSource(workspace, path!))
      let did: Imported = { added: [], replaced: [], skipped: [] }
      const { store: made } = await kept(content => {
        const next = imported(content, given, how, Date.now())
        did = next.did
        return next.content
      }, context)
      await told('imported', context, { added: did.added, replaced: did.replaced })
      return { ...did, ...(made && { store: made }) }
    },
    'POST /secrets/ci': async ({ targets, keys: wanted }, context) => {
      const { results, stale } = await pushes.push(targets, wanted)
      const pushed = results.filter(({ status }) => status === 'pushed')
      for (const repo of new Set(pushed.map(each => each.repo)))
        await told('pushed', context, { repo, keys: pushed.flatMap(each => (each.repo === repo ? [each.key] : [])) })
      if (pushed.length > 0) announcing.changed()
      return { results, stale }
    },
    'GET /secrets/uses': query => uses.list(query),
    'secrets.resolve': (input, context) => resolve(input, 'text', context),
    'secrets.resolveCommand': (input, context) => resolve(input, 'shell', context),
    'secrets.values': values,
    'secrets.atHost': atHost,
    'secrets.forHost': async (input, { caller }) => {
      if (store.locked !== undefined || store.head === undefined) return {}
      const found = gitSecret((await store.content()).secrets, input.host, input.form)
      if (!found) return {}
      await noted([found.name], input, caller)
      return { name: found.name, value: found.value }
    },
    'secrets.names': async () => {
      const known = await store.known()
      return {
        names: known.map(({ name }) => name).sort(),
        open: store.locked === undefined,
        made: store.head !== undefined,
        bound: known.some(isBound),
      }
    },
    'secrets.get': async ({ name }) => {
      const found = (await store.content()).secrets.find(each => each.name === name && each.kind === 'field')
      return found ? { value: found.value } : {}
    },
    'secrets.put': async ({ name, value }, context) => {
      checkField(name)
      checkValue(value)
      const now = Date.now()
      await kept(content => withSecret(content, { name, kind: 'field', value, at: now }, now), context)
      return { ok: true as const }
    },
    'secrets.drop': async ({ name }) => {
      const gone = fieldsOf(name)
      if ((await store.known()).some(each => gone(each.name)))
        await store.change(content => without(content, gone, Date.now()))
      return { ok: true as const }
    },
    'secrets.move': async ({ from, to }) => {
      const moves = fieldsOf(`${from}/`)
      if ((await store.known()).some(({ name }) => moves(name)))
        await store.change(content => renamed(content, name => (moves(name) ? to + name.slice(from.length) : name)))
      return { ok: true as const }
    },
    'secrets.mount': async ({ process, names }, { caller }) => {
      const folder = await mounts.mount(process, names)
      const given = names.filter(name => existsSync(join(folder, name)))
      await noted(given, { lane: 'shell', detail: process }, caller)
      return { folder }
    },
    'secrets.unmount': async ({ process }) => {
      await mounts.unmount(process)
      return { ok: true as const }
    },
  })
}

const plainNames = async (store: SecretStore): Promise<string[]> =>
  (await store.known()).flatMap(({ name, kind }) => (kind === 'field' ? [] : [name])).sort()

const FIELD = /^[A-Za-z0-9_.-]+(?:\/[A-Za-z0-9_.-]+)+$/

const checkField = (name: string): void => {
  if (name.length > 200 || !FIELD.test(name))
    refuse('invalid', `name: expected an owner and a field, such as github/token, found ${JSON.stringify(name)}`)
}

/** Whether a name is that of a field, or of one of an owner. */
const fieldsOf = (named: string) => {
  const owner = named.endsWith('/') ? named : `${named}/`
  return (name: string): boolean => name.includes('/') && (name === named || name.startsWith(owner))
}
