import type { Files } from '../../sdk/index.js'
import { ListFailure, listServer } from '../../sdk/node/models/model-list.js'
import type { ModelRow } from '../endpoints/contract.js'
import type { ProviderCatalogue } from './contract.js'
import type { DefinedModel, KnownModels, ProviderDefinition } from './definitions/contract.js'

/** What carries the credential of an account; undefined: no account is connected. */
export type AccountHeaders = { readonly [name: string]: string } | undefined

/** Parts of the group that catalogues work with. */
export interface ProviderCatalogueDeps {
  readonly files: Pick<Files, 'read' | 'write'>
  readonly signal: AbortSignal
  readonly now: () => number
  /** Called with the id of a provider that offers something else than before. */
  readonly changed: (id: string) => void
}

interface Answered {
  readonly baseUrl: string
  readonly models: ModelRow[]
  readonly at: number
}

const FRESH = 10 * 60_000
/** How long a provider that did not answer is left alone. */
const LEFT_ALONE = 60_000

const fileOf = (id: string): string => `catalogues/${id}`

/** What providers offer, asked of them and kept on disk. */
export class ProviderCatalogues {
  readonly #deps: ProviderCatalogueDeps
  readonly #answers = new Map<string, Answered>()
  readonly #askedAt = new Map<string, { at: number; live: boolean }>()
  readonly #asking = new Map<string, Promise<boolean>>()

  constructor(deps: ProviderCatalogueDeps) {
    this.#deps = deps
  }

  /** What is known without asking. */
  async known(definition: ProviderDefinition): Promise<ProviderCatalogue> {
    const answer = await this.#answer(definition)
    return answer
      ? catalogueOf(definition, answer.models, this.#isLive(definition) ? 'live' : 'stored', answer.at)
      : builtIn(definition)
  }

  /** What a provider offers, asked again where the last answer no longer counts. */
  async current(
    definition: ProviderDefinition,
    credential: AccountHeaders,
    force: boolean,
  ): Promise<ProviderCatalogue> {
    const asked = this.#askedAt.get(definition.id)
    const age = this.#deps.now() - (asked?.at ?? -Infinity)
    const due = force || asked === undefined || age >= (asked.live ? FRESH : LEFT_ALONE)
    const may = credential !== undefined || definition.models.open === true
    if (due && may) await this.#ask(definition, credential ?? {})
    return this.known(definition)
  }

  /** What an account may use; nothing of it is kept. */
  async asSeenBy(definition: ProviderDefinition, credential: AccountHeaders): Promise<ProviderCatalogue> {
    if (credential === undefined) return this.known(definition)
    try {
      const list = await listServer(serverOf(definition, credential), this.#deps.signal)
      return catalogueOf(definition, list.models, 'live', this.#deps.now())
    } catch (error) {
      if (error instanceof ListFailure) return this.known(definition)
      throw error
    }
  }

  #isLive({ id }: ProviderDefinition): boolean {
    const asked = this.#askedAt.get(id)
    return asked?.live === true && this.#deps.now() - asked.at < FRESH
  }

  async #answer({ id, baseUrl }: ProviderDefinition): Promise<Answered | undefined> {
    const held = this.#answers.get(id) ?? (await this.#deps.files.read<Answered>(fileOf(id)))
    if (held) this.#answers.set(id, held)
    return held?.baseUrl === baseUrl ? held : undefined
  }

  #ask(definition: ProviderDefinition, headers: { readonly [name: string]: string }): Promise<boolean> {
    const { id } = definition
    const asking = this.#asking.get(id)
    if (asking) return asking
    const asked = this.#fetch(definition, headers)
      .then(live => {
        this.#askedAt.set(id, { at: this.#deps.now(), live })
        return live
      })
      .finally(() => this.#asking.delete(id))
    this.#asking.set(id, asked)
    return asked
  }

  /** Asks a provider, and stores an answer that is not empty. */
  async #fetch(definition: ProviderDefinition, headers: { readonly [name: string]: string }): Promise<boolean> {
    const { id, baseUrl } = definition
    try {
      const list = await listServer(serverOf(definition, headers), this.#deps.signal)
      if (list.models.length === 0) return false
      const before = await this.#answer(definition)
      const answer = { baseUrl, models: list.models, at: this.#deps.now() }
      this.#answers.set(id, answer)
      await this.#deps.files.write(fileOf(id), answer)
      if (JSON.stringify(before?.models) !== JSON.stringify(answer.models)) this.#deps.changed(id)
      return true
    } catch (error) {
      if (error instanceof ListFailure) return false
      throw error
    }
  }
}

const serverOf = (
  { baseUrl, protocol, models: { list } }: ProviderDefinition,
  headers: { readonly [name: string]: string },
): Parameters<typeof listServer>[0] => ({
  protocol,
  baseUrl,
  headers,
  secrets: Object.values(headers).flatMap(value => [value, value.replace(/^Bearer /, '')]),
  ...(list !== undefined && { list }),
})

const builtIn = (definition: ProviderDefinition): ProviderCatalogue =>
  catalogueOf(definition, definition.models.builtIn.map(rowOfDefined), 'built-in')

const rowOfDefined = ({ id, label, efforts = [], badges = [], ...more }: DefinedModel): ModelRow => ({
  id,
  label,
  efforts: [...efforts],
  badges: [...badges],
  ...(more.description !== undefined && { description: more.description }),
  ...(more.contextWindow !== undefined && { contextWindow: more.contextWindow }),
  ...(more.helperOnly !== undefined && { helperOnly: more.helperOnly }),
})

const patternOf = (glob: string): RegExp =>
  new RegExp(`^${glob.replace(/[^\w*]/g, found => `\\${found}`).replaceAll('*', '.*')}$`)

/** What a definition knows of a model. */
export const knownOf = (known: readonly KnownModels[], id: string): KnownModels | undefined =>
  known.find(({ match }) => patternOf(match).test(id))

const factsOf = ({ window, output, efforts, thinking, pictures }: Partial<KnownModels> = {}): Partial<ModelRow> => ({
  ...(window !== undefined && { contextWindow: window }),
  ...(output !== undefined && { maxOutput: output }),
  ...(efforts && { efforts: [...efforts] }),
  ...(thinking && { thinking }),
  ...(pictures !== undefined && { pictures }),
})

const catalogueOf = (
  { models: { prefer = [], ignore = [], builtIn: named, known: facts = [] } }: ProviderDefinition,
  rows: readonly ModelRow[],
  source: ProviderCatalogue['source'],
  at?: number,
): ProviderCatalogue => {
  const left = ignore.map(patternOf)
  const known = new Map(named.map(model => [model.id as string, rowOfDefined(model)]))
  const kept = rows.filter(({ id }) => !left.some(pattern => pattern.test(id)))
  const preferred = prefer.flatMap(id => kept.find(row => row.id === id) ?? [])
  const models = [...preferred, ...kept.filter(({ id }) => !prefer.includes(id))].map(row => {
    const said = known.get(row.id)
    const fact = factsOf(knownOf(facts, row.id))
    return {
      // What the definition says of a model counts where the provider's list says nothing.
      ...fact,
      ...said,
      ...structuredClone(row),
      efforts: [row.efforts, said?.efforts ?? [], fact.efforts ?? []].find(each => each.length > 0) ?? [],
      ...(row.badges.length === 0 && { badges: said?.badges ?? [] }),
    }
  })
  return { models, default: models[0]?.id ?? '', source, ...(at !== undefined && { at }) }
}
