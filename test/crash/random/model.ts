import type { CardReply, Started, TranscriptMessage } from '../../../plugins/agent/contract.js'

/** The extra step of a script, which also writes a line into two files and says a sentence. */
export type Kind = 'plain' | 'slow' | 'ask' | 'plan' | 'permit' | 'words' | 'sleep' | 'git' | 'helper' | 'many' | 'said'

/** A message: once acknowledged it exists exactly once, unless a request removed it. */
export interface Message {
  readonly id: string
  readonly kind: Kind
  readonly nth: number
  readonly body: object
  answer?: Started
  /** An acknowledged request removed it; `maybe`: the outcome is unknown. */
  gone?: 'yes' | 'maybe'
  /** The order of the queue it waited in was changed. */
  moved?: boolean
}

/** A request to the daemon that was not answered. */
export type Flight =
  | { readonly what: 'message'; readonly message: Message }
  | { readonly what: 'reply'; readonly reply: CardReply }
  | { readonly what: 'withdraw'; readonly message: Message }
  | { readonly what: 'rewind'; readonly index: number; readonly rows: readonly string[] }
  | { readonly what: 'discard' | 'purge' | 'land' | 'archive' | 'stop' | 'order' | 'look' }

/** A conversation as its driver knows it. */
export interface Conversation {
  readonly id: string
  readonly isolated: boolean
  /** Rows of another record it begins with. */
  readonly forked: readonly string[]
  readonly messages: Message[]
  /** Whether the board has it; `unsure`: the message that opens it was not answered. */
  here: 'no' | 'unsure' | 'yes' | 'gone'
  flight?: Flight
  rewound: boolean
  /** A fork began with its record, so it is not rewound. */
  isSource?: boolean
  /** The record when it was last read: except for a rewind, it only grows. */
  record: string[]
  /** The files in the workspace after the last landing. */
  landed: string
  /** The requests and their outcomes, to analyse a failure. */
  readonly told: string[]
}

/** A control token as its driver knows it. */
export interface Token {
  readonly label: string
  id?: string
  text?: string
  state: 'unsure' | 'minted' | 'going' | 'revoked'
}

/** A row of a record without the fields that are computed on reading. */
export const rowOf = ({ checkpointId: _, ...row }: TranscriptMessage): string => JSON.stringify(row)

/** A message of the sandbox itself, which asks that work that was to land be made to fit. */
const OWN = /^land-held-/

const userIds = (rows: readonly TranscriptMessage[]): string[] =>
  rows.flatMap(({ role, messageId }) =>
    role === 'user' && messageId !== undefined && !OWN.test(messageId) ? [messageId] : [],
  )

const repeated = (list: readonly string[]): string[] => list.filter((each, index) => list.indexOf(each) !== index)

/** The faults in the order of messages of one delivery: it must be the order of sending. */
const disorder = (messages: readonly Message[], ids: readonly string[], delivery: string): string[] => {
  const nths = ids.flatMap(id => {
    const found = messages.find(message => message.id === id)
    return found?.answer?.delivery === delivery && !found.moved ? [found.nth] : []
  })
  return nths.some((nth, index) => nth < (nths[index - 1] ?? -1))
    ? [`${delivery} messages ran in the order ${nths.join()}`]
    : []
}

/** The faults of a record at rest: every acknowledged message must be there once, and nothing else. */
export const recordFaults = ({ messages, forked }: Conversation, rows: readonly TranscriptMessage[]): string[] => {
  const ids = userIds(rows.slice(forked.length))
  const known = new Map(messages.map(message => [message.id, message]))
  const said = rows
    .slice(forked.length)
    .filter(({ role }) => role === 'assistant')
    .map(({ text }) => text)
    .join('\n')
  return [
    ...repeated(ids).map(id => `${id} appears twice`),
    ...ids.filter(id => !known.has(id)).map(id => `${id} was never sent`),
    ...ids.filter(id => known.get(id)?.gone === 'yes').map(id => `${id} was removed and still exists`),
    ...messages
      .filter(({ id, answer, gone }) => answer && !gone && !ids.includes(id))
      .map(({ id }) => `${id} was acknowledged and is missing`),
    ...ids.filter(id => said.split(`${id} one`).length > 2).map(id => `the sentence of ${id} appears twice`),
    ...disorder(messages, ids, 'queued'),
    ...disorder(messages, ids, 'started'),
  ]
}

/**
 * The faults in the lines that the turns of a record wrote: in order, exactly one for each completed turn.
 */
export const lineFaults = (
  { messages, forked }: Conversation,
  rows: readonly TranscriptMessage[],
  files: { readonly [name: string]: string },
  ended: (run: string) => string | undefined,
): string[] =>
  Object.entries(files).flatMap(([name, text]) => {
    const lines = text.split('\n').filter(Boolean)
    const ids = userIds(rows.slice(forked.length))
    const places = lines.map(line => ids.indexOf(line))
    const completed = messages.filter(
      ({ id, kind, answer }) =>
        kind !== 'said'
        && answer
        && answer.delivery !== 'said'
        && ids.includes(id)
        && ended(answer.run) === 'completed',
    )
    return [
      ...repeated(lines).map(line => `${name}: ${line} was written twice`),
      ...lines
        .filter(line => !ids.includes(line))
        .map(line => `${name}: ${line} exists, but its message is not in the record`),
      ...(places.some((place, index) => place < (places[index - 1] ?? -1))
        ? [`${name}: the lines are in the order ${lines.join()}`]
        : []),
      ...completed
        .filter(({ id }) => !lines.includes(id))
        .map(({ id }) => `${name}: the turn of ${id} was completed, but its line is missing`),
    ]
  })

/** The names of the two files a conversation writes. */
export const filesOf = (id: string): { readonly a: string; readonly b: string } => ({
  a: `work/${id}.a`,
  b: `work/${id}.b`,
})

/** The script of a message. */
export const scriptOf = (kind: Kind, conversation: string, id: string, mark: string): string => {
  const { a, b } = filesOf(conversation)
  const between: { [kind in Kind]: readonly string[] } = {
    plain: [],
    slow: ['wait 25', `think about ${id}`, 'wait 25'],
    ask: ['ask Which?', '| x: the one', '| y: the other'],
    plan: ['plan Go on?', '| 1. go on'],
    permit: ['permit Tool: May it?'],
    words: ['wait words 250', `say heard $words`],
    sleep: [`run sleep ${mark}`],
    git: ['run git add -A && git -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m own'],
    helper: ['helper& part', '| say a part', 'join'],
    many: Array.from({ length: 12 }, (_, nth) => [`write work/${conversation}.${nth}`, `| ${id}`]).flat(),
    said: [],
  }
  return [`append ${a}`, `| ${id}`, `say ${id} one`, ...between[kind], `append ${b}`, `| ${id}`].join('\n')
}
