import { randomBytes } from 'node:crypto'
import type {
  AgentContext,
  CreateElicitationRequest,
  PermissionOption,
  RequestPermissionRequest,
} from '@agentclientprotocol/sdk'
import type { Card, CardReply, Question } from '../../../../plugins/agent/contract.js'
import { cardLines } from '../../follow/card-lines.js'
import { isHelp, replyFrom } from '../../follow/cards.js'
import { oneLine, plain, stylesOf } from '../../terminal/text.js'

const NO_STYLES = stylesOf(false)

/** A card that an editor is asked about. */
export interface AskedCard {
  readonly card: Card
  readonly sessionId: string
  /** The call of the editor's view that it belongs to. */
  readonly toolCallId: string
  /** Whether the editor can show a form. */
  readonly forms: boolean
  /** Aborted when the card was answered elsewhere. */
  readonly signal: AbortSignal
}

/** The text of a card, as the command line shows it. */
export const cardText = (card: Card): string =>
  card.kind === 'plan' ? plain(card.text) : cardLines(card, NO_STYLES).join('\n')

/** The text of a card for an editor; fenced, because Markdown could hide a part of what the agent asks to do. */
export const cardMarkdown = (card: Card): string =>
  card.kind === 'plan' || card.kind === 'question' ? cardText(card) : fenced(cardText(card))

const fenced = (text: string): string => {
  const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length + 1)))
  return [fence, text, fence].join('\n')
}

/** The title of a card in an editor. */
export const cardHeading = (card: Card): string => {
  if (card.kind === 'plan') return 'Plan'
  if (card.kind === 'permission') return oneLine(card.title ?? card.displayName ?? card.toolName)
  if (card.kind === 'question') return oneLine(card.questions[0]?.header || 'Question')
  return isHelp(card) ? 'Help' : 'Offer'
}

type Choice = PermissionOption & { readonly reply: CardReply }

/** Asks the person in the editor; undefined: the editor left it open. */
export const askEditor = async (client: AgentContext, asked: AskedCard): Promise<CardReply | undefined> => {
  const { card, forms } = asked
  if (card.kind === 'question') {
    if (forms) return askForm(client, asked, card)
    return askQuestions(client, asked, card)
  }
  const choices = choicesOf(card)
  const picked = await permission(client, asked, cardHeading(card), cardMarkdown(card), choices)
  return choices.find(({ optionId }) => optionId === picked)?.reply
}

const choicesOf = (card: Exclude<Card, { kind: 'question' }>): Choice[] => {
  const of = (optionId: string, name: string, kind: PermissionOption['kind'], answer: string): Choice => ({
    optionId,
    name,
    kind,
    reply: replyFrom(card, [answer]),
  })
  if (card.kind === 'plan')
    return [of('yes', 'Follow the plan', 'allow_once', 'yes'), of('no', 'Do not', 'reject_once', 'no')]
  if (card.kind === 'permission')
    return [
      of('once', 'Allow once', 'allow_once', 'once'),
      ...(card.alwaysLabel ? [of('always', oneLine(card.alwaysLabel), 'allow_always', 'always')] : []),
      of('deny', 'Deny', 'reject_once', 'deny'),
    ]
  const [yes, no] = isHelp(card) ? ['It is done', 'I cannot'] : ['Yes', 'No']
  return [of('yes', yes, 'allow_once', 'yes'), of('no', no, 'reject_once', 'no')]
}

const permission = async (
  client: AgentContext,
  { sessionId, toolCallId, signal, card }: AskedCard,
  title: string,
  body: string,
  options: readonly PermissionOption[],
): Promise<string | undefined> => {
  const asked: RequestPermissionRequest = {
    sessionId,
    toolCall: {
      toolCallId,
      title,
      status: 'pending',
      ...(card.kind === 'plan' && { kind: 'switch_mode' as const }),
      content: [{ type: 'content', content: { type: 'text', text: body } }],
    },
    options: options.map(({ optionId, name, kind }) => ({ optionId, name, kind })),
  }
  const { outcome } = await client.request('session/request_permission', asked, {
    cancellationSignal: signal,
    stopWaitingOnCancel: true,
  })
  return 'optionId' in outcome ? outcome.optionId : undefined
}

type QuestionCard = Extract<Card, { kind: 'question' }>

/** Without forms each question is a choice of its own; one that takes words is left to the next message. */
const askQuestions = async (
  client: AgentContext,
  asked: AskedCard,
  card: QuestionCard,
): Promise<CardReply | undefined> => {
  if (card.questions.some(({ options }) => options.length === 0)) return undefined
  const answers: { [question: string]: string } = {}
  for (const [index, { question, header, options }] of card.questions.entries()) {
    const lines = options.map(({ label, description }) => `- ${label}${description ? `: ${description}` : ''}`)
    const choices: PermissionOption[] = [
      ...options.map(({ label }, at) => ({
        optionId: `${index}-${at}`,
        name: oneLine(label),
        kind: 'allow_once' as const,
      })),
      { optionId: `${index}-skip`, name: 'Skip', kind: 'reject_once' },
    ]
    const body = plain([question, ...lines].join('\n'))
    const picked = await permission(client, asked, oneLine(header || question), body, choices)
    if (picked === undefined) return undefined
    const option = options[choices.findIndex(({ optionId }) => optionId === picked)]
    if (option) answers[question] = option.label
  }
  return { kind: 'question', requestId: card.requestId, ...(Object.keys(answers).length > 0 && { answers }) }
}

const OWN = '-words'

interface NamedChoice {
  const: string
  title: string
}

/** A field of a form, in the words that both protocols share. */
type FormField =
  | { type: 'string'; title: string; description?: string }
  | { type: 'string'; title: string; description?: string; oneOf: NamedChoice[] }
  | { type: 'array'; title: string; description?: string; items: { anyOf: NamedChoice[] } }

const fieldsOf = ({ question, header, options, multiSelect }: Question, name: string): [string, FormField][] => {
  const about = { title: oneLine(header || question), description: plain(question) }
  const list = options.map(({ label, description }) => ({
    const: label,
    title: oneLine(description ? `${label}: ${description}` : label),
  }))
  if (list.length === 0) return [[name, { type: 'string', ...about }]]
  return [
    [
      name,
      multiSelect ? { type: 'array', ...about, items: { anyOf: list } } : { type: 'string', ...about, oneOf: list },
    ],
    [name + OWN, { type: 'string', title: 'In your own words' }],
  ]
}

/** A form that shows a card. */
interface CardForm {
  message: string
  requestedSchema: { type: 'object'; properties: { [name: string]: FormField }; required?: string[] }
}

const ANSWER = 'answer'

/** A card as a form: questions in its fields, everything else as a choice. */
export const cardForm = (card: Card): CardForm => {
  if (card.kind === 'question') {
    const { questions } = card
    const properties = Object.fromEntries(questions.flatMap((question, at) => fieldsOf(question, `q${at + 1}`)))
    const message = plain(questions.map(({ question }) => question).join('\n'))
    return { message, requestedSchema: { type: 'object', properties } }
  }
  const choices = choicesOf(card).map(({ optionId, name }) => ({ const: optionId, title: name }))
  return {
    message: cardText(card),
    requestedSchema: {
      type: 'object',
      properties: { [ANSWER]: { type: 'string', title: cardHeading(card), oneOf: choices } },
      required: [ANSWER],
    },
  }
}

/** The reply that a filled-in form is; undefined: it has no answer. */
export const replyOfForm = (card: Card, content: { readonly [name: string]: unknown }): CardReply | undefined => {
  const { requestId } = card
  if (card.kind !== 'question') return choicesOf(card).find(({ optionId }) => optionId === content[ANSWER])?.reply
  const answers = Object.fromEntries(
    card.questions.flatMap(({ question, multiSelect }, at) => {
      const own = content[`q${at + 1}${OWN}`]
      const given = typeof own === 'string' && own.trim() ? own : content[`q${at + 1}`]
      if (Array.isArray(given)) return [[question, given.map(String)] as const]
      if (given === undefined || given === null || given === '') return []
      return [[question, multiSelect ? [String(given)] : String(given)] as const]
    }),
  )
  return { kind: 'question', requestId, ...(Object.keys(answers).length > 0 && { answers }) }
}

/** Shows the questions as one form. */
const askForm = async (
  client: AgentContext,
  { sessionId, toolCallId, signal }: AskedCard,
  card: QuestionCard,
): Promise<CardReply | undefined> => {
  const { message, requestedSchema } = cardForm(card)
  const asked: CreateElicitationRequest = { mode: 'form', sessionId, toolCallId, message, requestedSchema }
  const answer = await client.request('elicitation/create', asked, {
    cancellationSignal: signal,
    stopWaitingOnCancel: true,
  })
  if (answer.action === 'decline') return { kind: 'question', requestId: card.requestId }
  if (answer.action !== 'accept') return undefined
  return replyOfForm(card, (('content' in answer && answer.content) || {}) as { readonly [name: string]: unknown })
}

/**
 * The reply that a message of the person is to a card that the editor could not show. A plan or a permission gets a yes
 * only by that word alone: "ok, but why?" is none.
 */
export const replyInWords = (card: Card, said: string): CardReply => {
  const words = said.trim()
  if (card.kind === 'question') {
    const lines = card.questions.length > 1 ? words.split('\n').slice(0, card.questions.length) : [words]
    return replyFrom(card, lines)
  }
  if (card.kind !== 'plan' && card.kind !== 'permission')
    return replyFrom(card, words.split(/\s+(.*)/s).filter(Boolean))
  try {
    return replyFrom(card, [words.replace(/[.!]$/, '')])
  } catch {
    return replyFrom(card, [card.kind === 'plan' ? 'no' : 'deny', words])
  }
}

/** Asks the person in the editor for a yes. */
export const confirmedIn = async (
  client: AgentContext,
  sessionId: string,
  title: string,
  text: string,
): Promise<boolean> => {
  const { outcome } = await client.request('session/request_permission', {
    sessionId,
    toolCall: {
      toolCallId: `confirm-${randomBytes(4).toString('hex')}`,
      title,
      status: 'pending',
      content: [{ type: 'content', content: { type: 'text', text } }],
    },
    options: [
      { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
      { optionId: 'no', name: 'No', kind: 'reject_once' },
    ],
  })
  return 'optionId' in outcome && outcome.optionId === 'yes'
}
