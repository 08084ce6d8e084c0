import type { OfferedCards } from '../cards/offered-cards.js'
import type { ConnectionSkill } from '../contract.js'
import { SEED } from '../otp/seed.js'
import type { RecordedEntry } from '../records/entries.js'
import type { Sites } from './site-kind.js'

const header = (name: string, description: string): string =>
  `---\nname: ${name}\ndescription: ${JSON.stringify(description)}\n---\n`

/** The name of a connection's skill. */
const nameOf = (id: string): string => id.toLowerCase().replaceAll('_', '-')

/** What agents read about a connection; undefined: it has nothing to say. */
export const skillOf = (
  { id, kind, config, label, secrets, handler }: RecordedEntry,
  cards: Pick<OfferedCards, 'brought'>,
  sites: Pick<Sites, 'addressOf'>,
): ConnectionSkill | undefined => {
  const name = nameOf(id)
  const brought = cards.brought(kind, config)?.skill
  if (kind !== 'browser' && kind !== 'identity')
    return brought === undefined
      ? undefined
      : { id, name, text: `${brought.trimEnd()}\n\nThis is the connection ${id}.\n` }
  const address = sites.addressOf(kind, { config })
  const seed = handler?.seedField?.(config) ?? SEED
  const lines = [
    ...(address === undefined
      ? []
      : [`Open ${address} with the tool Browser and \`account: "${id}"\`: that browser is signed in.`]),
    ...(config.username === undefined ? [] : [`The user name is ${String(config.username)}.`]),
    ...(config.email === undefined ? [] : [`The address is ${String(config.email)}.`]),
    ...(secrets.includes('password')
      ? [`Where a form asks for the password, fill in {{secret:${id}/password}}: you never see it.`]
      : []),
    ...(secrets.includes(seed) ? [`Where a form asks for a one-time code, fill in {{code:${id}}}.`] : []),
    ...(config.identity === undefined
      ? []
      : [`It belongs to the identity ${String(config.identity)}: {{secret:${String(config.identity)}/password}}.`]),
    ...(config.mailbox === undefined ? [] : [`Mail to it arrives at the connection ${String(config.mailbox)}.`]),
    ...(config.openAccounts === undefined
      ? []
      : [config.openAccounts === 'on' ? 'You may open accounts with it.' : 'Open no accounts with it.']),
    ...(config.purpose === undefined ? [] : [`It is for: ${String(config.purpose)}`]),
    'Where a site asks for more than that, hand the browser to the person with Handover.',
  ]
  const what = kind === 'identity' ? `the identity ${label}` : `the account ${label}`
  const own = `${header(name, `Use it to work with ${what} (connection ${id}).`)}${lines.join('\n')}\n`
  return { id, name, text: brought === undefined ? own : `${brought.trimEnd()}\n\n${lines.join('\n')}\n` }
}
