import { refuse } from '../../../sdk/index.js'
import { isMeaningfulVariable } from '../../../sdk/node/programs/meaningful-variables.js'
import { ownProgram } from '../../../sdk/node/programs/run.js'
import { webAddress } from '../../../sdk/node/network/outbound.js'
import { activeStatus, failingStatus, type KindHandler, type OpenEntry } from '../records/kinds.js'
import { isSeed, SEED, SEED_EXPECTED } from '../otp/seed.js'
import type { CliCard } from './cards.js'
import { assertFields, fieldValues, filledTemplate, withoutCard, type OfferedCards } from './offered-cards.js'

const HOST = /^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]{1,5})?$/
const VARIABLE = /^[A-Z][A-Z0-9_]{0,79}$/

const fieldsOf = ({ fields }: CliCard, secret: boolean): string[] =>
  fields.filter(field => (field.secret ?? false) === secret).map(({ key }) => key)

/** The ending of the variables of a connection. */
const ending = (id: string): string => id.toUpperCase().replaceAll('-', '_')

/** The variables that the programs of a turn find of a connection. */
export const variablesOfCli = (entry: OpenEntry, card: CliCard | undefined): { [name: string]: string } => {
  const { id, config, secrets } = entry
  if (!card) return {}
  if (card.templates) {
    const values = fieldValues(card, entry)
    return Object.fromEntries(
      Object.entries(card.templates).map(([name, text]) => [`${name}_${ending(id)}`, filledTemplate(text, values)]),
    )
  }
  const own = String(config.name ?? '')
  const names = card.id === 'token' ? { [own]: 'token', [`${own}_URL`]: 'url' } : card.variables
  return Object.fromEntries(
    Object.entries(names).flatMap(([name, field]) => {
      const value = secrets[field] ?? config[field]
      return value === undefined ? [] : [[`${name}_${ending(id)}`, String(value)]]
    }),
  )
}

const check = (entry: OpenEntry, found: CliCard | undefined): CliCard => {
  const { config, secrets } = entry
  const card =
    found
    ?? refuse(
      'not-found',
      `there is no card ${JSON.stringify(String(config.provider).slice(0, 60))}: see GET /capabilities/catalog`,
    )
  assertFields(card, entry, 'provider')
  if (!card.templates && config.host !== undefined && !HOST.test(String(config.host)))
    refuse('invalid', 'config.host: expected the name of a host, such as github.com')
  if (!card.templates && config.url !== undefined) addressOf(String(config.url))
  if (card.id === 'token' && (!VARIABLE.test(String(config.name)) || isMeaningfulVariable(String(config.name))))
    refuse('invalid', 'config.name: expected the name of a variable, such as API_TOKEN, that means nothing to programs')
  const seed = seedFieldOf(card)
  if (secrets[seed] !== undefined && !isSeed(secrets[seed])) refuse('invalid', `config.${seed}: ${SEED_EXPECTED}`)
  return card
}

/** The field with the seed of one-time codes. */
const seedFieldOf = ({ fields }: CliCard): string => fields.find(({ totp }) => totp)?.key ?? SEED

const addressOf = (url: string): void => {
  if (!URL.canParse(url)) refuse('invalid', 'config.url: expected an http or https address')
  webAddress(url)
}

/** Command-line tools with their credential. */
export const cliKind = (cards: Pick<OfferedCards, 'cli' | 'mark'>): KindHandler => {
  const cliCard = (provider: unknown) => cards.cli(provider)
  const state = async (card: CliCard) =>
    card.program === undefined || (await ownProgram(card.program)) !== undefined
      ? activeStatus()
      : failingStatus(
          `the program ${card.program} is not installed: install it, or use the variables without it`,
          'rebuild',
        )
  return {
    kind: 'cli',
    // A card that nobody knows may have any secret: what looks like one is treated so.
    secretFields: config => {
      const card = cliCard(config.provider)
      return card ? fieldsOf(card, true) : ['token', 'password', 'secret', SEED]
    },
    mainSecret: config => cliCard(config.provider)?.fields.find(({ secret }) => secret)?.key ?? 'token',
    label: config => {
      const card = cliCard(config.provider)
      const own = String(config[card?.id === 'token' ? 'name' : 'account'] ?? '')
      return own || card?.name
    },
    card: config => String(config.provider),
    seedField: config => {
      const card = cliCard(config.provider)
      return card && seedFieldOf(card)
    },
    mark: config => cards.mark('cli', config),
    unfold: entry => (cliCard(entry.config.provider) ? entry : undefined),
    check: async entry => void check(entry, cliCard(entry.config.provider)),
    apply: async (entry, report) => {
      const card = check(entry, cliCard(entry.config.provider))
      const names = Object.keys(variablesOfCli(entry, card))
      report(
        names.length > 0
          ? `programs find it as ${names.join(', ')}`
          : `GET /capabilities/${entry.id}/otp answers its codes`,
      )
      return state(card)
    },
    probe: async entry => {
      const card = cliCard(entry.config.provider)
      return card ? state(card) : withoutCard()
    },
  }
}
