import type { MadeInvitation } from '../../../../plugins/system/contract.js'
import type { MemberList } from '../../../kernel.js'
import type { Role } from '../../../types.js'
import { askedAs } from '../../calls/asked-as.js'
import { asked } from '../../terminal/asked.js'
import { oneLine } from '../../terminal/text.js'
import { CONNECTION, type GivenArguments, misused, type Terminal, type Verb } from '../../verb.js'
import { dayOfTime, timeOf } from '../../terminal/when.js'
import { say } from '../../terminal/write.js'

const ROLES: readonly string[] = ['viewer', 'collaborator', 'maintainer', 'owner'] satisfies Role[]

/** Lists members, grants and removes roles, and makes invitations. */
export const members: Verb = {
  name: 'members',
  usage: '[list | add EMAIL --role ROLE | invite --role ROLE | remove EMAIL|INVITATION]',
  summary: 'show the members, grant and remove roles, invite people',
  examples: [
    'members',
    'members add ann@example.org --role viewer',
    'members invite --role collaborator --note "for Eve"',
    'members remove ann@example.org',
  ],
  notes: [
    'Roles: viewer (reads), collaborator (runs turns), maintainer (lands, reads logs), owner (manages members).',
    'add grants a role to the person who signs in with that e-mail, or changes the role of a member; owner '
      + 'transfers ownership.',
    'invite prints only a link on standard output: the first person to open it gets the role. It is shown only '
      + 'once.',
  ],
  ids: { 'EMAIL|INVITATION': ['system', 'members'] },
  flags: {
    role: { value: 'ROLE', choices: ROLES, help: 'viewer, collaborator, maintainer or owner' },
    areas: { value: 'IDS', help: 'limit a viewer or collaborator to these areas: their ids, separated by commas' },
    note: { value: 'TEXT', help: 'what the invitation is for, shown in the list' },
    expires: { value: 'WHEN', help: 'how long an invitation is valid, such as 12h or 30d; default: 7d' },
    ...CONNECTION,
  },
  most: 2,
  run: (terminal, given) => {
    const [what = 'list', name] = given.args
    if (what === 'list' && name === undefined) {
      return askedAs(terminal, given, ['system', 'members'], (client, options) =>
        client.call('GET /members', undefined, options),
      )
    }
    if (what === 'add' && name) {
      const input = { email: name, ...grantOf(given) }
      const row = ({ members }: MemberList) => members.find(({ email }) => email === name.toLowerCase())
      return asked(
        terminal,
        given,
        async (client, options) => row(await client.call('POST /members', input, options)),
        member => `${oneLine(name)} is ${input.role}${member?.bound ? '' : ', from the first sign-in on'}`,
      )
    }
    if (what === 'invite' && name === undefined) {
      const [note, expires] = [given.text('note'), given.text('expires')]
      const input = {
        ...grantOf(given),
        ...(note && { note }),
        ...(expires && { expiresAt: timeOf(expires, Date.now()) }),
      }
      return asked(
        terminal,
        given,
        async (client, options) => (await client.call('POST /members', input, options)).invitation!,
        made => invited(terminal, made),
      )
    }
    if (what === 'remove' && name) {
      const who = name.includes('@') ? { email: name } : { invitation: name }
      return asked(
        terminal,
        given,
        (client, options) => client.call('DELETE /members', who, options),
        () => `removed ${oneLine(name)}`,
      )
    }
    return misused(`expected members ${members.usage}, found members ${given.args.join(' ')}`)
  },
}

const grantOf = (given: GivenArguments): { role: Role; areas?: string[] } => {
  const role = given.text('role') ?? ''
  if (!ROLES.includes(role)) misused(`expected --role ${ROLES.join('|')}, found ${role || 'none'}`)
  const areas = (given.text('areas') ?? '')
    .split(',')
    .map(id => id.trim())
    .filter(Boolean)
  return { role: role as Role, ...(areas.length && { areas }) }
}

/** Only the link goes to standard output, so that it can be piped. */
const invited = (terminal: Terminal, { url, id, expiresAt }: MadeInvitation): string => {
  say(terminal, `invitation ${oneLine(id)}, valid once, until ${dayOfTime(expiresAt)}\n`)
  return oneLine(url)
}
