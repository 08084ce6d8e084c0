import type { CliColumns } from '../../cli-table.js'
import type { WallGrants } from '../../host.js'
import { declareTurnWritable } from '../../node/programs/turn-writable.js'
import { WITHOUT_WALL } from '../../node/wall/absence.js'
import { homeOfPeople } from '../../node/wall/home.js'
import type { Mount } from '../../node/wall/spec.js'
import { mountsOf } from '../../node/wall/view.js'
import { wallKind } from '../../node/wall/wall.js'
import { tableRows } from '../calls/answer.js'
import { printResult } from '../terminal/asked.js'
import { whichDaemon } from '../daemon/connection.js'
import { SELF } from '../terminal/own-name.js'
import { CONNECTION, EXIT, CommandFailure, type Verb } from '../verb.js'

/** One path that is visible behind a wall, or closed there. */
interface Row {
  readonly path: string
  readonly access: 'read' | 'write' | 'closed'
  readonly why: string
}

const NONE: WallGrants = { read: [], write: [] }
const ACCESS: { readonly [operation: string]: Row['access'] } = {
  show: 'read',
  link: 'read',
  bind: 'write',
  empty: 'closed',
  hide: 'closed',
}
const WALLS = { bwrap: 'bubblewrap', unshare: 'unshare', none: 'no wall' } as const
const COLUMNS: CliColumns = {
  access: 'access',
  path: { field: 'path', most: Infinity },
  what: { field: 'why', most: Infinity },
}
const TEMPORARY = new Set(['/tmp', '/var/tmp'])

/** Shows what turns and terminals can read and write. */
export const wall: Verb = {
  name: 'wall',
  usage: '',
  summary: 'show what turns and terminals can read and write on this machine',
  examples: ['wall'],
  notes: [
    'Nothing else is visible to them. A turn in a private copy has the copy in place of the ' + 'workspace.',
    `The network of turns: ${SELF} network.`,
  ],
  flags: CONNECTION,
  most: 0,
  run: async (terminal, given) => {
    const { url, daemon } = await whichDaemon(terminal, given)
    if (!daemon)
      throw new CommandFailure(
        EXIT.failed,
        `${url} is not a daemon of this user on this machine: run this command where it runs`,
      )
    const { workspace, data, grants = NONE } = daemon
    declareTurnWritable([workspace, data, ...grants.write])
    const spec = { workspace, data, grants, cwd: workspace, env: {}, home: await homeOfPeople(data) }
    const [kind, mounts] = await Promise.all([wallKind(), mountsOf(spec)])
    return printResult(terminal, given, { wall: kind, rows: mounts.flatMap(rowOf) }, ({ rows }, width) =>
      linesOf(kind, rows, width),
    )
  },
}

const rowOf = ([operation, , path, why = '']: Mount): Row[] => {
  if (operation === 'seal') return []
  const access = TEMPORARY.has(path) ? 'write' : ACCESS[operation]!
  return [{ path, access, why }]
}

const linesOf = (kind: keyof typeof WALLS, rows: readonly Row[], width: number | undefined): string[] => {
  const order: Row['access'][] = ['write', 'read', 'closed']
  const sorted = order.flatMap(access => rows.filter(row => row.access === access))
  return [
    kind === 'none'
      ? `${WITHOUT_WALL} (apt-get install bubblewrap)`
      : `behind ${WALLS[kind]}, these paths are visible and nothing else:`,
    '',
    ...tableRows(sorted, COLUMNS, { width, now: 0, self: SELF }),
    '',
    `the network of turns: ${SELF} network; terminals have that of the machine`,
  ]
}
