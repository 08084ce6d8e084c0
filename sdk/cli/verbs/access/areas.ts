import type { Area } from '../../../../plugins/areas/contract.js'
import { askedAs } from '../../calls/asked-as.js'
import { asked } from '../../terminal/asked.js'
import { SELF } from '../../terminal/own-name.js'
import { oneLine, plain } from '../../terminal/text.js'
import { CONNECTION, misused, type GivenArguments, type Terminal, type Verb } from '../../verb.js'

const EXPECTED =
  'expected areas, areas show ID, write ID FOLDER…, give ID EMAIL…, take ID EMAIL…, reach EMAIL|PATH or delete ID'

/** Shows, writes and grants the sets of folders that people are limited to. */
export const areasVerb: Verb = {
  name: 'areas',
  group: 'areas',
  usage: '[show ID | write ID FOLDER… | give ID EMAIL… | take ID EMAIL… | reach EMAIL|PATH | delete ID]',
  summary: 'limit people to folders, and see who reaches what',
  examples: [
    'areas',
    'areas show docs',
    'areas write docs docs/ --label "The documents"',
    'areas give docs ann@example.org',
    'areas reach ann@example.org',
  ],
  notes: [
    'An area is a named set of folders with everything below them; . is the whole workspace. write replaces a '
      + 'whole area.',
    'A person who holds areas reaches only these. Giving one to a person who reaches the whole workspace takes the '
      + 'rest away and needs --narrow.',
    'reach shows who reaches a path, or what a person reaches, and through which areas.',
  ],
  ids: { ID: ['areas', 'list'], 'EMAIL…': ['system', 'members'] },
  flags: {
    label: { value: 'LABEL', help: 'write: the name that people see; default: unchanged, or the id' },
    note: { value: 'NOTE', help: 'write: a note' },
    read: { help: 'write: its holders may only read' },
    narrow: { help: 'give: also to people who reach the whole workspace, who lose the rest of it' },
    ...CONNECTION,
  },
  least: 0,
  most: 102,
  run: (terminal, given) => {
    const [what = 'list', id, ...rest] = given.args
    const one = id !== undefined && rest.length === 0
    if (what === 'list' && id === undefined) return listed(terminal, given)
    if (what === 'show' && one) return shown(terminal, given, id)
    if (what === 'write' && id !== undefined && rest.length > 0) return written(terminal, given, id, rest)
    if ((what === 'give' || what === 'take') && id !== undefined && rest.length > 0)
      return granted(terminal, given, id, what, rest)
    if (what === 'reach' && one) return reached(terminal, given, id)
    if (what === 'delete' && one) return deleted(terminal, given, id)
    return misused(`${EXPECTED}, found areas ${given.args.join(' ')}`)
  },
}

const listed = (terminal: Terminal, given: GivenArguments): Promise<number> =>
  askedAs(terminal, given, ['areas', 'list'], (client, options) => client.call('GET /areas', undefined, options))

const foldersOf = ({ folders, problems = [] }: Area): string =>
  folders
    .map(folder => {
      const problem = problems.find(each => each.folder === folder)?.problem
      return problem ? `${oneLine(folder)} (${problem})` : oneLine(folder)
    })
    .join(' ')

const peopleOf = ({ holders }: Pick<Area, 'holders'>): string =>
  holders ? holders.map(({ email }) => plain(email)).join(' ') || 'nobody' : ''

const shown = (terminal: Terminal, given: GivenArguments, id: string): Promise<number> =>
  askedAs(terminal, given, ['areas', 'get'], (client, options) => client.call('GET /areas/{id}', { id }, options))

const written = (terminal: Terminal, given: GivenArguments, id: string, folders: string[]): Promise<number> =>
  asked(
    terminal,
    given,
    async (client, options) => {
      const known = (await client.call('GET /areas', undefined, options)).areas.find(area => area.id === id)
      const note = given.text('note') ?? known?.note
      const input = {
        id,
        folders,
        label: given.text('label') ?? known?.label ?? id,
        access: given.on('read') ? ('read' as const) : ('work' as const),
        ...(note && { note }),
      }
      return client.call('POST /areas', input, options)
    },
    ({ area, created }) => {
      const next = created ? [`next: ${SELF} areas give ${plain(id)} EMAIL`] : []
      return [`${created ? 'made' : 'replaced'} ${plain(id)}: ${foldersOf(area)} (${area.access})`, ...next]
    },
  )

const granted = (
  terminal: Terminal,
  given: GivenArguments,
  id: string,
  what: 'give' | 'take',
  emails: string[],
): Promise<number> => {
  const change = what === 'give' ? { add: emails, narrow: given.on('narrow') } : { remove: emails }
  return asked(
    terminal,
    given,
    (client, options) => client.call('POST /areas/{id}/holders', { id, ...change }, options),
    done => `${plain(id)} is held by ${peopleOf(done)}`,
  )
}

const reached = (terminal: Terminal, given: GivenArguments, subject: string): Promise<number> => {
  const which = subject.includes('@') || subject.startsWith('invitation:') ? { email: subject } : { path: subject }
  return askedAs(terminal, given, ['areas', 'reach'], (client, options) =>
    client.call('GET /areas/reach', which, options),
  )
}

const deleted = (terminal: Terminal, given: GivenArguments, id: string): Promise<number> =>
  asked(
    terminal,
    given,
    (client, options) => client.call('DELETE /areas/{id}', { id }, options),
    () => `deleted ${plain(id)}; its folders and files stay`,
  )
