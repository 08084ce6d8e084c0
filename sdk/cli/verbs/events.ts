import type {
  AgentsEvent,
  AttentionEvent,
  HelloEvent,
  PresenceUser,
  RuntimeChangedEvent,
  SystemEvent,
} from '../../../plugins/system/contract.js'
import type { AgentCard } from '../../../plugins/agents/contract.js'
import { connected } from '../daemon/connection.js'
import { jsonLine, plain, short, stylesOf, type Styles } from '../terminal/text.js'
import { CONNECTION, EXIT, type Verb } from '../verb.js'
import { write } from '../terminal/write.js'

/** Follows the events of the sandbox. */
export const events: Verb = {
  name: 'events',
  usage: '',
  summary: 'follow what happens in the sandbox, until it stops or Ctrl-C',
  examples: ['events', 'events --json'],
  notes: ['It reconnects by itself and misses no event. With --json every event is printed, heartbeats too.'],
  flags: CONNECTION,
  most: 0,
  run: (terminal, given) =>
    connected(terminal, given, async ({ client }) => {
      const show = given.on('json') ? jsonLine : createEventLines(stylesOf(terminal.colour))
      for await (const event of await client.call('GET /events', { roster: 'delta' }, { signal: terminal.signal })) {
        await write(terminal, show(event))
      }
      if (!given.on('json')) await write(terminal, 'the sandbox stopped\n')
      return EXIT.ok
    }),
}

/** Formats events as lines of text; events without new information give none. */
export const createEventLines = (styles: Styles): ((event: SystemEvent) => string) => {
  let known = false
  const before = new Map<string, string>()
  /** Skips a snapshot whose text did not change. */
  const news = (kind: string, line: string, silent: string): string[] => {
    const same = (before.get(kind) ?? silent) === line
    before.set(kind, line)
    return same ? [] : [line]
  }
  const linesOf = (event: SystemEvent): string[] => {
    switch (event.kind) {
      // A resync is followed by a hello, which is shown.
      case 'heartbeat':
      case 'resync':
        return []
      case 'hello': {
        const first = !known
        known = true
        return first
          ? greeting(event)
          : event.resumed
            ? []
            : [styles.yellow('restarted: events from the meantime are not shown')]
      }
      case 'boot':
        return news(
          'boot',
          styles.dim(
            event.ready
              ? 'the daemon has started'
              : `starting: ${plain(event.steps.find(({ state }) => state === 'running')?.label ?? 'waiting')}`,
          ),
          '',
        )
      case 'runtimeChanged':
        return [changed(event)]
      case 'presence':
        return news('presence', here(event.users), here([]))
      case 'attention':
        return news('attention', waits(event), 'nothing waits for you')
      case 'agents':
        return news('agents', fleet(event), '')
      case 'agent':
        if (event.removed !== undefined) return [`${plain(event.removed)} ${styles.dim('is gone')}`]
        return event.agent ? [card(event.agent, styles)] : []
    }
    return [styles.dim(short(plain(JSON.stringify(event)), 200))]
  }
  return event => {
    let lines: string[]
    try {
      lines = linesOf(event)
    } catch {
      // A newer daemon may have changed the fields of a known kind.
      lines = [styles.dim(short(plain(JSON.stringify(event)), 200))]
    }
    return lines.map(line => `${line}\n`).join('')
  }
}

const greeting = ({ me, boot }: HelloEvent): string[] => [
  `watching as ${plain(me.actor)} (${plain(me.scope ?? me.role)})${boot.ready ? '' : '; the sandbox is starting'}`,
]

const changed = ({ domains, keys }: RuntimeChangedEvent): string =>
  `changed: ${domains.map(plain).join(', ')}${keys?.length ? ` (${short(keys.map(plain).join(', '), 80)})` : ''}`

const person = ({ email, name, view, idle }: PresenceUser): string =>
  plain(name ?? email) + (view ? ` in ${short(plain(view), 40)}` : '') + (idle ? ', idle' : '')

const here = (users: readonly PresenceUser[]): string =>
  users.length ? `here: ${users.map(person).join('; ')}` : 'no one is here'

const COUNTED: readonly (readonly [field: keyof Omit<AttentionEvent, 'kind'>, one: string, many: string])[] = [
  ['cards', 'card to answer', 'cards to answer'],
  ['approvals', 'approval', 'approvals'],
  ['needs', 'need', 'needs'],
  ['land', 'landing to allow', 'landings to allow'],
  ['ci', 'broken pipeline', 'broken pipelines'],
  ['issues', 'issue', 'issues'],
  ['offload', 'lost run', 'lost runs'],
]

const waits = (event: AttentionEvent): string => {
  const parts = COUNTED.flatMap(([field, one, many]) =>
    event[field] ? [`${event[field]} ${event[field] === 1 ? one : many}`] : [],
  )
  return parts.length ? `waits for you: ${parts.join(', ')}` : 'nothing waits for you'
}

const fleet = ({ agents }: AgentsEvent): string => {
  const counts = Map.groupBy(agents, ({ status }) => status)
  const parts = [...counts].map(([status, cards]) => `${cards.length} ${plain(status)}`)
  const sum = `${agents.length} ${agents.length === 1 ? 'conversation' : 'conversations'}`
  return parts.length ? `${sum}: ${parts.join(', ')}` : sum
}

const card = ({ id, status, title, activity, failure }: AgentCard, { bold, dim, red }: Styles): string => {
  const doing = activity?.todo ?? [activity?.tool, activity?.target].filter(Boolean).join(' ')
  const words = [
    title && short(plain(title), 60),
    doing && dim(short(plain(doing), 60)),
    failure && red(short(plain(failure), 100)),
  ].filter(Boolean)
  return `${bold(plain(id))} ${plain(status)}${words.length ? `  ${words.join('  ')}` : ''}`
}
