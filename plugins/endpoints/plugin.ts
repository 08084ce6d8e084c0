import { type Context, type Contract, type Host, refuse } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { record } from '../../sdk/node/record/record.js'
import { Catalogues, rowsOf } from './catalogues.js'
import {
  type EndpointCalls,
  type EndpointInput,
  type EndpointRow,
  endpoints,
  type EndpointTarget,
  type EndpointTest,
  type LocalInput,
  type ServerInput,
} from './contract.js'
import { priceIn, SERVER_KIND, type ServerEntry } from './entry.js'
import { examples } from './examples.js'
import { firstOf, serverChoice, serverRow, serverTarget, TRIAL, trialChoice, trialRow, trialTarget } from './rows.js'
import { checkAddress, checkBaseUrl, checkId, conditionOf, givenServer, MODEL_KINDS, serverIn } from './save.js'
import { LOCAL_KIND } from './local/entry.js'
import { type LocalFound, localIn, LocalModels } from './local/local-models.js'
import { localChoice, localRow, localTarget } from './local/local-row.js'
import { EndpointStore } from './store.js'
import { Trial } from './trial.js'
import { tryServer } from './try-server.js'

export const contract: Contract<EndpointCalls> = { ...endpoints, examples }

const TEST_WITHIN = 30_000
/** What a change of the fetch ahead of time is published as. */
const PREFETCH = 'local-model'

/** Keeps the model servers of this sandbox, and asks them what they serve. */
export const activate = async (host: Host): Promise<void> => {
  const store = new EndpointStore(host)
  const changes = new KeyedMutex()
  const testing = new Set<string>()

  const publish = (key?: string): void => {
    host
      .call('kernel.events.publish', { domain: 'endpoints', ...(key !== undefined && { key }) })
      .catch(error => host.log.warn('publishing a change of model servers failed', { error: String(error) }))
  }

  const catalogues = new Catalogues({
    files: host.files,
    signal: host.signal,
    access: entry => (entry.identity === undefined ? store.access(entry) : locals.access(entry)),
    changed: publish,
  })
  const locals: LocalModels = new LocalModels({
    host,
    store,
    changed: id => {
      publish(id)
      // Its list is asked for once its server has loaded, so that it is known before anybody asks.
      if (id !== PREFETCH) behind(locals.find(id).then(async found => found && (await listOf(found))))
    },
  })
  const trial = new Trial(host.place.models?.trial, {
    files: host.files,
    signal: host.signal,
    changed: () => publish(TRIAL),
  })

  /** Work that goes on after an answer; what fails is for the operator. */
  const behind = (work: Promise<unknown>): void =>
    void work.catch(
      error => host.signal.aborted || host.log.warn('asking a model server failed', { error: String(error) }),
    )

  const found = async (id: string): Promise<ServerEntry> =>
    (await store.server(id)) ?? refuse('not-found', `there is no model server ${id}: GET /endpoints lists them`)

  /** The list of a local model: asked of its server where that runs. */
  const listOf = async ({ server, view }: LocalFound) =>
    rowsOf(await (view.state.status === 'ready' ? catalogues.current(server) : catalogues.known(server)))

  const rowOfLocal = async (local: LocalFound): Promise<EndpointRow> =>
    localRow(local.entry, local.view, await listOf(local))

  const rowById = async (id: string): Promise<EndpointRow> => {
    const local = await locals.find(id)
    return local ? rowOfLocal(local) : rowOf(await found(id))
  }

  const rowOf = async (entry: ServerEntry): Promise<EndpointRow> => {
    const [known, access] = await Promise.all([catalogues.known(entry), store.access(entry)])
    if (!catalogues.isFresh(entry)) behind(catalogues.ask(entry))
    return serverRow(entry, known, access)
  }

  const test = async (entry: ServerEntry, asked: { model?: string; tools?: boolean }): Promise<EndpointTest> => {
    const access = entry.identity === undefined ? store.access(entry) : locals.access(entry)
    const { problem, headers, secrets } = await access
    if (problem !== undefined) refuse('unavailable', `${entry.label}: ${problem}`)
    const key = entry.hasKey && entry.identity === undefined ? await store.secret(entry.id, 'apiKey') : undefined
    const signal = AbortSignal.any([host.signal, AbortSignal.timeout(TEST_WITHIN)])
    const { protocol, baseUrl } = entry
    const server = { protocol, baseUrl, headers, secrets }
    const { model } = asked
    const tried = await tryServer({
      server,
      key,
      tools: asked.tools !== false,
      signal,
      ...(model !== undefined && { model }),
    })
    if (tried.model !== undefined && tried.tools !== 'untested')
      await catalogues.mark(entry, tried.model, tried.tools === 'unsupported')
    catalogues.expire(entry.id)
    behind(catalogues.ask(entry))
    return tried
  }

  const saveLocal = async (input: LocalInput, context: Context): Promise<EndpointRow> => {
    if (input.url !== undefined) await checkAddress('url', input.url, (await host.call('kernel.listeners')).listeners)
    await changes.with(input.id, async () => {
      if (!(await locals.save(input))) return
      publish(input.id)
      await record(host, { type: 'endpoint.saved', outcome: 'ok', extra: { id: input.id } }, context)
    })
    return rowById(input.id)
  }

  const save = async (input: EndpointInput, context: Context): Promise<EndpointRow> => {
    checkId(input.id)
    return input.kind === 'local' ? saveLocal(input, context) : saveServer(input, context)
  }

  const saveServer = async (input: ServerInput, context: Context): Promise<EndpointRow> => {
    await checkBaseUrl(input.baseUrl, (await host.call('kernel.listeners')).listeners)
    const entry = await changes.with(input.id, async () => {
      const { given, changes: changed } = await givenServer(store, input, await store.server(input.id))
      if (changed) {
        await store.put(given)
        catalogues.expire(input.id)
        publish(input.id)
        await record(host, { type: 'endpoint.saved', outcome: 'ok', extra: { id: input.id } }, context)
      }
      return found(input.id)
    })
    await catalogues.current(entry)
    return rowOf(entry)
  }

  host.contribute('capabilities.kinds', () => [...MODEL_KINDS])
  host.on('daemon.ready', () => behind(locals.sync()))
  host.on('capability.connected', ({ id, kind }) => {
    if (kind === LOCAL_KIND && !changes.held(id)) behind(locals.sync())
    if (kind !== SERVER_KIND || changes.held(id)) return
    catalogues.expire(id)
    publish(id)
  })
  host.on('capability.removed', ({ id, kind }) => {
    if (kind === LOCAL_KIND && !changes.held(id)) behind(Promise.all([locals.sync(), catalogues.drop(id)]))
    if (kind !== SERVER_KIND || changes.held(id)) return
    behind(catalogues.drop(id))
    publish(id)
  })

  await host.serve(endpoints, {
    ...locals.calls,
    'GET /endpoints': async () => {
      const rows = [
        ...(await Promise.all((await store.servers()).map(rowOf))),
        ...(await Promise.all((await locals.all()).map(rowOfLocal))),
      ]
      const known = await trial.known()
      if (host.place.models?.trial) behind(trial.ask())
      return { endpoints: [...rows, ...(known.status.available ? [trialRow(known)] : [])] }
    },
    'POST /endpoints': (input, context) => save(input, context),
    'endpoints.connect': async ({ id, kind, config }, context) =>
      conditionOf(await save(kind === LOCAL_KIND ? localIn({ id, config }) : serverIn(id, config), context)),
    'endpoints.condition': async ({ id }) => conditionOf(await rowById(id)),
    'DELETE /endpoints/{id}': async ({ id }, context) => {
      if (id === TRIAL) refuse('conflict', 'the free trial belongs to the deployment and cannot be removed')
      await changes.with(id, async () => {
        if (await store.local(id)) await locals.remove(id)
        else if (await store.server(id)) await store.drop(id)
        else return
        await catalogues.drop(id)
        publish(id)
        await record(host, { type: 'endpoint.removed', outcome: 'ok', extra: { id } }, context)
      })
      return { ok: true }
    },
    'POST /endpoints/{id}/test': async ({ id, ...asked }) => {
      const local = await locals.find(id)
      const untried = local && untriedOf(localTarget(local.entry, local.view, await listOf(local)))
      if (untried) return untried
      const entry = local?.server ?? (await found(id))
      if (testing.has(id)) refuse('too-many', `${entry.label} is being tested now`, { retryAfter: 5 })
      testing.add(id)
      try {
        return await test(entry, asked)
      } finally {
        testing.delete(id)
      }
    },
    'GET /endpoints/{id}/models': async ({ id }) => {
      const { models } = (id === TRIAL && trialChoice(await trial.known())) || { models: undefined }
      if (models) return { models, default: firstOf(models) }
      const local = await locals.find(id)
      if (local) {
        const choice = localChoice(local.entry, local.view, await listOf(local))
        return { models: choice.models, default: choice.default }
      }
      const rows = rowsOf(await catalogues.current(await found(id)))
      return { models: rows, default: firstOf(rows) }
    },
    'GET /endpoints/trial/status': () => trial.ask(),
    'endpoints.target': async ({ id }) => {
      const offered = id === TRIAL ? await trial.server() : undefined
      if (offered) return trialTarget(await trial.known(), offered.baseUrl, offered.headers)
      const local = await locals.find(id)
      if (local) return localTarget(local.entry, local.view, await listOf(local))
      const entry = await found(id)
      const known = await catalogues.known(entry)
      const usable = known.status === 'ready'
      if (usable && !catalogues.isFresh(entry)) behind(catalogues.ask(entry))
      return serverTarget(entry, usable ? known : await catalogues.current(entry), await store.access(entry))
    },
    'endpoints.price': async ({ id, model }) => {
      const entry = await store.server(id)
      const price = entry && priceIn(entry, model)
      return price ? { price } : {}
    },
    'endpoints.choices': async () => {
      const offered = trialChoice(await trial.known())
      const servers = await store.servers()
      const choices = await Promise.all(servers.map(async entry => serverChoice(entry, await catalogues.known(entry))))
      const own = await Promise.all(
        (await locals.all()).map(async ({ entry, view, server }) =>
          localChoice(entry, view, rowsOf(await catalogues.known(server))),
        ),
      )
      return { endpoints: [...choices, ...own, ...(offered ? [offered] : [])] }
    },
  })
}

/** The result for a local model whose server does not run; undefined when it does. */
const untriedOf = ({ problem, models }: EndpointTarget): EndpointTest | undefined =>
  problem === undefined
    ? undefined
    : { ok: false, models: models.length, chat: 'skipped', streaming: false, tools: 'untested', detail: problem }
