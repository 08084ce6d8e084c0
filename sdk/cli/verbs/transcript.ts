import type {
  AnsweredCard,
  Card,
  ToolCard,
  TranscriptMessage,
  TranscriptPage,
} from '../../../plugins/agent/contract.js'
import type { Client } from '../../client.js'
import { printResult } from '../terminal/asked.js'
import { connected } from '../daemon/connection.js'
import { conversationOf } from '../follow/newest.js'
import { SELF } from '../terminal/own-name.js'
import { answerWords, cardLines } from '../follow/card-lines.js'
import { isAnswerable } from '../follow/cards.js'
import { createRender } from '../follow/render.js'
import { counted, oneLine, plain, quoted, short, stylesOf, type Styles } from '../terminal/text.js'
import { timeWords } from '../terminal/values.js'
import { CONVERSATIONS, CONNECTION, type GivenArguments, misused, type Terminal, type Verb } from '../verb.js'

/** Shows the messages of a conversation. */
export const transcript: Verb = {
  name: 'transcript',
  usage: '[CONVERSATION]',
  summary: 'show the messages and actions of a conversation; default: the newest one',
  examples: ['transcript', 'transcript c-1 --limit 10'],
  notes: ['Messages are numbered for rewind and fork. Those of a running turn have no number yet; attach follows it.'],
  ids: CONVERSATIONS,
  flags: {
    limit: { value: 'N', help: 'only the last N messages' },
    before: { value: 'N', help: 'only messages before this one' },
    ...CONNECTION,
  },
  most: 1,
  run: (terminal, given) => {
    const [limit, before] = [countOf(given, 'limit'), countOf(given, 'before')]
    return connected(terminal, given, async ({ client }) => {
      const id = await conversationOf(terminal, client, given)
      const asked = { id, ...(limit !== undefined && { limit }), ...(before !== undefined && { before }) }
      const page = await client.call('GET /agents/{id}/transcript', asked, { signal: terminal.signal })
      const styles = stylesOf(terminal.colour)
      const turn =
        before === undefined ? await underWay(terminal, client, id, terminal.colour && !given.on('json')) : undefined
      const under = turn ? turnLines(id, turn, styles) : []
      return printResult(terminal, given, { ...page, ...(turn && { turn }) }, () => [
        ...(page.messages.length === 0 && under.length > 0 ? [] : linesOf(id, page, limit, styles)),
        ...under,
      ])
    })
  },
}

/** A turn that runs or waits, which gets into the record when it is over. */
interface TurnUnderWay {
  readonly by: string
  readonly startedAt: number
  readonly prompt: string
  /** What it has said and done so far. */
  readonly text: string
  /** The questions that wait for an answer. */
  readonly cards: readonly Card[]
}

const underWay = async (
  terminal: Terminal,
  client: Client,
  id: string,
  colour: boolean,
): Promise<TurnUnderWay | undefined> => {
  const agent = await client.call('GET /agents/{id}', { id }, { signal: terminal.signal })
  if (agent.startedAt === undefined) return undefined
  const enough = new AbortController()
  const render = createRender({ colour })
  const signal = AbortSignal.any([terminal.signal, enough.signal])
  const open = new Set(agent.cards?.map(({ requestId }) => requestId))
  const cards: Card[] = []
  let [prompt, startedAt, text, frames] = ['', agent.startedAt, '', Infinity]
  try {
    for await (const event of await client.call('POST /agent/attach', { conversationId: id }, { signal })) {
      if (event.kind === 'attached') [frames, prompt, startedAt] = [event.seq, event.prompt, event.startedAt]
      else text += render(event)
      if (event.kind === 'frame' && isAnswerable(event.event) && open.has(event.event.requestId))
        cards.push(event.event)
      if (event.kind !== 'attached' && (event.kind !== 'frame' || event.seq >= frames)) break
      if (frames === 0) break
    }
  } finally {
    enough.abort()
  }
  return { by: agent.lastBy ?? WHO.user, startedAt, prompt, text, cards }
}

const turnLines = (id: string, { by, startedAt, prompt, text, cards }: TurnUnderWay, styles: Styles): string[] => {
  const waits =
    cards.length > 0
      ? `it waits for an answer: ${SELF} answer ${quoted(id)} …`
      : `it runs: ${SELF} attach ${quoted(id)}`
  const head = `-  ${styles.bold(oneLine(by))}${styles.dim(`, ${timeWords(startedAt, Date.now())}`)}`
  const lines = `${head}\n${indented(plain(prompt))}\n-  ${styles.bold(WHO.assistant)}\n${indented(text)}`
  return [...lines.replace(/\n+$/, '').split('\n'), styles.dim(waits)]
}

const indented = (text: string): string => text.replace(/^(?=.)/gm, '   ')

const countOf = (given: GivenArguments, flag: string): number | undefined => {
  const text = given.text(flag)
  if (text !== undefined && !/^\d{1,9}$/.test(text)) misused(`--${flag}: expected a whole number, found ${plain(text)}`)
  return text === undefined ? undefined : Number(text)
}

const linesOf = (id: string, { messages }: TranscriptPage, limit: number | undefined, styles: Styles): string[] => {
  const [first] = messages
  if (!first) return ['no messages yet']
  const command =
    `${SELF} transcript ${quoted(id)} --before ${first.index}` + (limit === undefined ? '' : ` --limit ${limit}`)
  const hint = `… ${counted(first.index, 'earlier message')}; ${command} shows ${first.index === 1 ? 'it' : 'them'}`
  const earlier = first.index === 0 ? [] : [styles.dim(hint)]
  const now = Date.now()
  return [...earlier, ...messages.flatMap(message => messageLines(message, now, styles))]
}

const WHO: { readonly [role in TranscriptMessage['role']]: string } = {
  user: 'a person',
  assistant: 'agent',
  notice: 'sandbox',
}

const messageLines = (message: TranscriptMessage, now: number, styles: Styles): string[] => {
  const { index, role, by, sentAt, text, attachments = [], tools = [], cards = [], placed } = message
  const who =
    role === 'user' ? oneLine(by ?? WHO.user) : `${WHO[role] ?? oneLine(role)}${placed ? ', sent by a person' : ''}`
  const head = `${index}  ${styles.bold(who)}${sentAt === undefined ? '' : styles.dim(`, ${timeWords(sentAt, now)}`)}`
  const body = [
    ...tools.flatMap(tool => toolLines(tool, '', styles)),
    ...cards.flatMap(card => answered(card, styles)),
    ...(text ? plain(text).replace(/\n+$/, '').split('\n') : []),
    ...(attachments.length ? [styles.dim(`attached: ${attachments.map(oneLine).join(', ')}`)] : []),
  ]
  return [head, ...body.map(line => (line ? `   ${line}` : ''))]
}

const toolLines = ({ name, status, target, children = [] }: ToolCard, indent: string, styles: Styles): string[] => {
  const mark = status === 'completed' ? styles.green('✓') : status === 'failed' ? styles.red('✗') : styles.dim('▸')
  return [
    `${indent}${mark} ${short(plain(`${name}${target ? ` ${target}` : ''}`), 100)}`,
    ...children.flatMap(child => toolLines(child, `${indent}  `, styles)),
  ]
}

const answered = ({ card, reply, by }: AnsweredCard, styles: Styles): string[] => [
  ...cardLines(card, styles),
  styles.dim(`${reply ? `answered: ${plain(answerWords(reply))}` : 'not answered'}${by ? ` (${oneLine(by)})` : ''}`),
]
