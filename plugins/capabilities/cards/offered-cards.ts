import { conditionHolds } from '../../../sdk/conditions.js'
import { refuse, type Host } from '../../../sdk/index.js'
import { orderedHash } from '../../../sdk/node/files/ordered-hash.js'
import type { ExtensionCard, OfferedCard } from '../../extensions/contract.js'
import type { CapabilityStatus, ShownConfig } from '../records/contract.js'
import type { OpenEntry } from '../records/kinds.js'
import { CLI_CARDS, OWN_CARDS, type CliCard, type ConnectionCard } from './cards.js'
import type { CardCategory, CardField } from './contract.js'

/** A card of an extension, as connections are made from it. */
export interface BroughtCard extends ConnectionCard {
  readonly extension: string
  readonly offered: ExtensionCard
  readonly skill?: string
}

/** The fields of a tool server that its card may ask for besides those of its templates. */
const SERVER_FIELDS = ['allowTools', 'denyTools', 'timeoutMs', 'auth', 'clientId', 'scopes', 'cwd']
/** The kinds whose card a connection names with this field, because their own fields name none. */
const NAMED_BY: { readonly [kind: string]: string } = {
  cli: 'provider',
  browser: 'platform',
  agent: 'card',
  mcp: 'card',
}
/** The kinds of cards that extensions may offer and this sandbox connects. */
const OFFERED = new Set(['agent', 'browser', 'cli', 'mcp'])

/** The cards of the catalogue: those of this group, and those of the extensions that run. */
export class OfferedCards {
  readonly #host: Pick<Host, 'call' | 'serves'>
  #brought: ReadonlyMap<string, BroughtCard> = new Map()

  constructor(host: Pick<Host, 'call' | 'serves'>) {
    this.#host = host
  }

  /** Reads the cards of extensions as they are now. */
  async refresh(): Promise<void> {
    if (!(await this.#host.serves('extensions.cards'))) return
    const { cards } = await this.#host.call('extensions.cards')
    const own = new Set(OWN_CARDS.map(({ id }) => id))
    const used = cards.filter(({ card }) => OFFERED.has(card.kind) && !own.has(card.id))
    this.#brought = new Map(used.map(offered => [offered.card.id, broughtCard(offered)]))
  }

  /** Whether a connection may be made from a card of an extension, so that the cards must be read first. */
  isBrought(kind: string, config: ShownConfig): boolean {
    const id = config[NAMED_BY[kind] ?? '']
    return id !== undefined && OWN_CARDS.every(card => card.id !== id)
  }

  /** The card of an extension that a connection was made from. */
  brought(kind: string, config: ShownConfig): BroughtCard | undefined {
    const found = this.#brought.get(String(config[NAMED_BY[kind] ?? '']))
    return found?.kind === kind ? found : undefined
  }

  /** Changes with what a card of an extension does with the fields; undefined: the card is none of an extension. */
  mark(kind: string, config: ShownConfig): string | undefined {
    const found = this.brought(kind, config)
    if (!found) return undefined
    const { env, mcp, loginUrl, homeUrl, fields } = found.offered
    const decides = fields.map(({ key, value, default: otherwise, secret }) => [key, value, otherwise, secret])
    return orderedHash([env, mcp, loginUrl, homeUrl, decides])
  }

  /** The card of a command-line tool. */
  cli(provider: unknown): CliCard | undefined {
    const own = CLI_CARDS.find(({ id }) => id === provider)
    const brought = own ? undefined : this.brought('cli', { provider: String(provider) })
    return own ?? (brought && { ...brought, kind: 'cli', variables: {}, templates: brought.offered.env ?? {} })
  }

  get all(): readonly (ConnectionCard & Partial<BroughtCard>)[] {
    return [...OWN_CARDS, ...this.#brought.values()]
  }

  /** The categories that cards of extensions name and the catalogue lacks. */
  categories(known: readonly CardCategory[]): CardCategory[] {
    const ids = [...this.#brought.values()].map(({ category }) => category)
    return [...new Set(ids)]
      .filter(id => known.every(each => each.id !== id))
      .map(id => ({ id, label: id[0]!.toUpperCase() + id.slice(1), hint: 'Offered by extensions.' }))
  }
}

const broughtCard = ({ extension, card, skill }: OfferedCard): BroughtCard => {
  const { id, kind, catalog } = card
  // A seed is a secret, whatever the card says.
  const fields = card.fields.map(field => (field.totp ? { ...field, secret: true } : field))
  const { name, description, category, hint, art, logo, icon, guide } = catalog
  return {
    ...{ id, kind, name, description, category, extension, offered: card, fields },
    ...(hint !== undefined && { hint }),
    ...(art !== undefined && { art }),
    ...(logo !== undefined && { logo }),
    ...(icon !== undefined && { icon }),
    ...(guide && { guide }),
    ...(skill !== undefined && { skill }),
  }
}

/** The state of a connection whose card is gone. */
export const withoutCard = (): CapabilityStatus => ({
  ...{ state: 'inactive', code: 'missing-extension', checkedAt: Date.now() },
  detail: 'nothing that runs here offers its card: switch its extension on, or install it',
})

/** The values of a card's fields: fixed ones, given ones, and what stands for those that were left out. */
export const fieldValues = (
  { fields }: { readonly fields: readonly CardField[] },
  { config, secrets }: Pick<OpenEntry, 'config' | 'secrets'>,
): { readonly [field: string]: string } =>
  Object.fromEntries(
    fields.flatMap(({ key, value, default: otherwise }) => {
      const found = value ?? secrets[key] ?? config[key] ?? otherwise
      return found === undefined ? [] : [[key, String(found)]]
    }),
  )

/** A template over the values of fields: `${field}`, and `${field:uri}` as part of an address. */
export const filledTemplate = (template: string, values: { readonly [field: string]: string }): string =>
  template.replace(/\$\{([a-zA-Z][a-zA-Z0-9]*)(:uri)?\}/g, (_, field: string, uri?: string) => {
    const value = (Object.hasOwn(values, field) ? values[field] : undefined) ?? ''
    return uri === undefined ? value : encodeURIComponent(value)
  })

/** Refuses fields that a card does not have, lacks or cannot take; `named` is the field that names the card. */
export const assertFields = (
  { id, fields }: Pick<ConnectionCard, 'id' | 'fields'>,
  entry: Pick<OpenEntry, 'config' | 'secrets'>,
  named: string,
): void => {
  const { config, secrets } = entry
  const known = new Set([named, ...fields.map(({ key }) => key)])
  const other = Object.keys({ ...config, ...secrets }).find(field => !known.has(field))
  if (other !== undefined)
    refuse('invalid', `config.${other}: expected only ${[...known].join(', ')} for the card ${id}`)
  const values = fieldValues({ fields }, entry)
  for (const { key, label, optional, multiline, options, when, value: fixed } of fields) {
    const value = config[key] ?? secrets[key]
    if (fixed !== undefined && value !== undefined && value !== fixed)
      refuse('invalid', `config.${key}: expected nothing, for it is always ${fixed}`)
    if (values[key] === undefined && !optional && conditionHolds(when, values))
      refuse('invalid', `config.${key}: expected a value (${label})`)
    if (value === undefined) continue
    if (typeof value !== 'string' || (multiline ? /\0/ : /[\0\r\n]/).test(value))
      refuse('invalid', `config.${key}: expected ${multiline ? 'a text' : 'one line of text'}`)
    if (options && options.every(option => option.value !== value))
      refuse('invalid', `config.${key}: expected one of ${options.map(option => option.value).join(', ')}`)
  }
}

/** The fields of a kind of its own, from those of the card that a connection was made from. */
export const unfolded = (entry: OpenEntry, { kind, fields, offered }: BroughtCard): OpenEntry => {
  const values = fieldValues({ fields }, entry)
  const only = (keys: readonly string[]) =>
    Object.fromEntries(keys.flatMap(key => (values[key] === undefined ? [] : [[key, values[key]]])))
  if (kind === 'agent') return { ...entry, config: only(['command', 'name', 'loginCommand']), secrets: only(['env']) }
  const { transport, url, command, args } = offered.mcp!
  const filled = Object.entries({ url, command, args }).flatMap(([key, template]) =>
    template === undefined ? [] : [[key, filledTemplate(template, values)] as const],
  )
  // Which calls ask a person is said by a person, never by the card.
  const { approve } = entry.config
  return {
    ...entry,
    config: {
      ...{ transport, ...only(SERVER_FIELDS), ...Object.fromEntries(filled) },
      ...(approve !== undefined && { approve }),
    },
    // A secret in a template is masked in what is said of the server.
    secrets: { ...entry.secrets, ...only(['token', 'headers', 'env', 'clientSecret']) },
  }
}
