import { SEED } from '../otp/seed.js'
import type { CardField, CatalogCard } from './contract.js'

type SiteCard = Pick<CatalogCard, 'id' | 'name' | 'kind' | 'category' | 'description' | 'hint'> & {
  readonly fields: readonly CardField[]
}

/** The card of a site that no extension describes. */
export const OWN_SITE = 'site'

const SEED_FIELD = { key: SEED, label: 'Seed of one-time codes', secret: true, optional: true, totp: true }
const PASSWORD = { key: 'password', label: 'Password', secret: true, optional: true }

/** The exit through which the pages of an account are asked. */
export const EXIT_FIELD: CardField = {
  ...{ key: 'exit', label: 'Exit its pages go through', placeholder: 'Id of a connection', optional: true },
}

/** An account at such a site. */
export const SITE: SiteCard = {
  id: OWN_SITE,
  name: 'Account at a site',
  kind: 'browser',
  category: 'accounts',
  description: 'A browser of its own for agents, in which you sign in to a site once.',
  hint: 'Connect it, then choose Sign in: a window opens. Close it when you are signed in.',
  fields: [
    { key: 'url', label: 'Address to sign in at', placeholder: 'https://app.example.org/login' },
    { key: 'username', label: 'User name', optional: true },
    PASSWORD,
    SEED_FIELD,
    { key: 'identity', label: 'Identity it belongs to', placeholder: 'Id of a connection', optional: true },
    { key: 'purpose', label: 'What agents use it for', optional: true, multiline: true },
    EXIT_FIELD,
  ],
}

/** An address that accounts are opened with. */
export const IDENTITY: SiteCard = {
  id: 'identity',
  name: 'Identity',
  kind: 'identity',
  category: 'accounts',
  description: 'An address and a password that agents fill into forms without seeing the password.',
  fields: [
    { key: 'email', label: 'E-mail', placeholder: 'robot@example.org' },
    PASSWORD,
    SEED_FIELD,
    { key: 'mailbox', label: 'Its mailbox', placeholder: 'Id of a connection', optional: true },
    { key: 'loginUrl', label: 'Address to sign in at', optional: true },
    EXIT_FIELD,
    {
      key: 'openAccounts',
      label: 'May open accounts',
      optional: true,
      options: [
        { value: 'on', label: 'Yes' },
        { value: 'off', label: 'No' },
      ],
    },
  ],
}
