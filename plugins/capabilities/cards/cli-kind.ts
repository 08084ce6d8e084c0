import { refuse } from '../../../sdk/index.js'
import { isMeaningfulVariable } from '../../../sdk/node/programs/meaningful-variables.js'
import { ownProgram } from '../../../sdk/node/programs/run.js'
import { webAddress } from '../../../sdk/node/network/outbound.js'
import type { ShownConfig } from '../records/contract.js'
import { activeStatus, failingStatus, type KindHandler, type OpenEntry } from '../records/kinds.js'
import { isSeed, SEED, SEED_EXPECTED } from '../otp/seed.js'
import { cliCard, type CliCard } from './cards.js'

const HOST = /^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]{1,5})?$/
const VARIABLE = /^[A-Z][A-Z0-9_]{0,79}$/

const fieldsOf = ({ fields }: CliCard, secret: boolean): string[] =>
  fields.filter(field => (field.secret ?? false) === secret).map(({ key }) => key)

/** The ending of the variables of a connection. */
const ending = (id: string): string => id.toUpperCase().replaceAll('-', '_')

/** The variables that the programs of a turn find of a connection. */
export const variablesOfCli = ({ id, config, secrets }: OpenEntry): { [name: string]: string } => {
  const card = cliCard(config.provider)
  if (!card) return {}
  const own = String(config.name ?? '')
  const names = card.id === 'token' ? { [own]: 'token', [`${own}_URL`]: 'url' } : card.variables
  return Object.fromEntries(
    Object.entries(names).flatMap(([name, field]) => {
      const value = secrets[field] ?? config[field]
      return value === undefined ? [] : [[`${name}_${ending(id)}`, String(value)]]
    }),
  )
}

const check = ({ config, secrets }: OpenEntry): CliCard => {
  const card =
    cliCard(config.provider)
    ?? refuse(
      'not-found',
      `there is no card ${JSON.stringify(String(config.provider).slice(0, 60))}: see GET /capabilities/catalog`,
    )
  const known = new Set(['provider', ...card.fields.map(({ key }) => key)])
  const other = Object.keys({ ...config, ...secrets }).find(field => !known.has(field))
  if (other !== undefined)
    refuse('invalid', `config.${other}: expected only ${[...known].join(', ')} for the card ${card.id}`)
  for (const { key, label, optional } of card.fields) {
    const value = config[key] ?? secrets[key]
    if (value === undefined && !optional) refuse('invalid', `config.${key}: expected a value (${label})`)
    if (value !== undefined && (typeof value !== 'string' || /[\0\r\n]/.test(value)))
      refuse('invalid', `config.${key}: expected one line of text`)
  }
  if (config.host !== undefined && !HOST.test(String(config.host)))
    refuse('invalid', 'config.host: expected the name of a host, such as github.com')
  if (config.url !== undefined) addressOf(String(config.url))
  if (card.id === 'token' && (!VARIABLE.test(String(config.name)) || isMeaningfulVariable(String(config.name))))
    refuse('invalid', 'config.name: expected the name of a variable, such as API_TOKEN, that means nothing to programs')
  if (secrets[SEED] !== undefined && !isSeed(secrets[SEED])) refuse('invalid', `config.${SEED}: ${SEED_EXPECTED}`)
  return card
}

const addressOf = (url: string): void => {
  if (!URL.canParse(url)) refuse('invalid', 'config.url: expected an http or https address')
  webAddress(url)
}

/** Command-line tools with their credential. */
export const cliKind = (): KindHandler => {
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
    destination: (config: ShownConfig) => {
      const [field, fallback] = cliCard(config.provider)?.server ?? ['url', '']
      return JSON.stringify([config.provider, config[field] ?? fallback, config.name])
    },
    label: config => {
      const card = cliCard(config.provider)
      const own = String(config[card?.id === 'token' ? 'name' : 'account'] ?? '')
      return own || card?.name
    },
    card: config => String(config.provider),
    check: async entry => void check(entry),
    apply: async (entry, report) => {
      const card = check(entry)
      const names = Object.keys(variablesOfCli(entry))
      report(
        names.length > 0
          ? `programs find it as ${names.join(', ')}`
          : `GET /capabilities/${entry.id}/otp answers its codes`,
      )
      return state(card)
    },
    probe: async entry => {
      const card = cliCard(entry.config.provider)
      return card ? state(card) : { state: 'inactive', detail: 'there is no such card any more', checkedAt: Date.now() }
    },
  }
}
