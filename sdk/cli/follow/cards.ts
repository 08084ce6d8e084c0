import { createInterface } from 'node:readline'
import type { Card, CardReply, Frame, Question } from '../../../plugins/agent/contract.js'
import { SELF } from '../terminal/own-name.js'
import { oneLine, quoted } from '../terminal/text.js'
import { misused, type Terminal } from '../verb.js'
import { write } from '../terminal/write.js'

const YES = new Set(['yes', 'y', 'approve', 'ok'])
const NO = new Set(['no', 'n', 'reject'])

const CARDS: { readonly [kind in Card['kind']]: true } = {
  plan: true,
  question: true,
  permission: true,
  browser_help: true,
  terminal_help: true,
  service_offer: true,
  capability_offer: true,
  payment_offer: true,
}

/** Whether a frame is a card that can be answered. */
export const isAnswerable = (frame: Frame): frame is Card => Object.hasOwn(CARDS, frame.kind)

type HelpCard = Extract<Card, { kind: 'browser_help' | 'terminal_help' }>

/** Whether a card hands something to a person. */
export const isHelp = (card: Card): card is HelpCard => card.kind === 'browser_help' || card.kind === 'terminal_help'

/** The possible answers to a card, in one line. */
export const choices = (card: Card): string => {
  if (card.kind === 'plan') return 'yes, or no and what to change'
  if (card.kind === 'permission') return card.alwaysLabel ? 'once, always or deny' : 'once or deny'
  if (isHelp(card)) return 'yes once it is done, or no and why'
  return card.kind === 'question' ? 'a number, a label or your own words for each question' : 'yes or no'
}

/** Parses the words of the command line into a reply; too many or missing words are a usage error. */
export const replyFrom = (card: Card, words: readonly string[]): CardReply => {
  const [first = '', ...more] = words
  const { requestId } = card
  const feedback = more.join(' ')
  if (card.kind === 'plan') {
    const word = first.toLowerCase()
    if (!YES.has(word) && !NO.has(word)) return misused(`expected ${choices(card)}, found ${first || 'nothing'}`)
    return { kind: 'plan', requestId, approve: YES.has(word), ...(feedback && { feedback }) }
  }
  if (card.kind === 'permission') {
    const word = first.toLowerCase()
    const decision = YES.has(word) ? 'once' : NO.has(word) ? 'deny' : word
    if (decision !== 'once' && decision !== 'always' && decision !== 'deny')
      return misused(`expected ${choices(card)}, found ${first || 'nothing'}`)
    return { kind: 'permission', requestId, decision, ...(feedback && { feedback }) }
  }
  if (isHelp(card)) {
    const word = first.toLowerCase()
    if (!YES.has(word) && !NO.has(word)) return misused(`expected ${choices(card)}, found ${first || 'nothing'}`)
    return { kind: card.kind, requestId, helped: YES.has(word), ...(feedback && { note: feedback }) }
  }
  if (card.kind !== 'question') return offerReply(card, words)
  if (words.length > card.questions.length)
    misused(`expected ${card.questions.length} answers, found ${words.length}: quote an answer of several words`)
  const answers = Object.fromEntries(
    card.questions.flatMap((question, at) => (words[at] ? [[question.question, chosen(question, words[at])]] : [])),
  )
  return { kind: 'question', requestId, ...(Object.keys(answers).length && { answers }) }
}

const offerReply = (
  card: Exclude<Card, { kind: 'plan' | 'permission' | 'question' } | HelpCard>,
  words: readonly string[],
): CardReply => {
  const { kind, requestId } = card
  const word = (words[0] ?? '').toLowerCase()
  if (words.length > 1 || (!YES.has(word) && !NO.has(word))) {
    return misused(`expected ${choices(card)}, found ${words.join(' ') || 'nothing'}`)
  }
  const yes = YES.has(word)
  return kind === 'capability_offer' ? { kind, requestId, connect: yes } : { kind, requestId, approve: yes }
}

const chosen = ({ options, multiSelect }: Question, words: string): string | string[] => {
  const one = (word: string) => (/^\d+$/.test(word) ? options[Number(word) - 1]?.label : undefined) ?? word
  if (!multiSelect) return one(words.trim())
  return words
    .split(',')
    .map(word => one(word.trim()))
    .filter(Boolean)
}

/** The default answer to a card; offers are declined by default. */
const usual = (card: Card, ofQuestion: (question: Question) => string): string[] => {
  switch (card.kind) {
    case 'plan':
      return ['yes']
    case 'permission':
      return ['once']
    case 'question':
      return card.questions.map(ofQuestion)
    default:
      return ['no']
  }
}

/** The default reply to a card: the first choice. */
export const firstChoice = (card: Card): CardReply =>
  replyFrom(
    card,
    usual(card, ({ options }) => (options.length ? '1' : '')),
  )

/** A command that answers the card, for another terminal. */
export const answerCommand = (card: Card): string => {
  const words = usual(card, ({ options }) => options[0]?.label ?? 'your words')
  return [`${SELF} answer`, ...[card.requestId, ...words].map(quoted)].join(' ')
}

/** Asks the person at the terminal; undefined if the signal is aborted or the input ends first. */
export const askPerson = async (
  terminal: Pick<Terminal, 'in' | 'out'>,
  card: Card,
  signal: AbortSignal,
): Promise<CardReply | undefined> => {
  if (signal.aborted) return undefined
  const lines = createInterface({ input: terminal.in, output: terminal.out })
  const typed = lines[Symbol.asyncIterator]()
  const ask = async (prompt: string): Promise<string | undefined> => {
    lines.setPrompt(oneLine(prompt))
    lines.prompt()
    const { value, done } = await typed.next()
    return done ? undefined : value
  }
  const close = () => lines.close()
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  signal.addEventListener('abort', close, { once: true })
  try {
    while (true) {
      const words = await asked(card, ask)
      if (!words) return undefined
      try {
        return replyFrom(card, words)
      } catch (error) {
        await write({ out: terminal.out, signal }, `${(error as Error).message}\n`)
      }
    }
  } finally {
    signal.removeEventListener('abort', close)
    close()
  }
}

const asked = async (card: Card, ask: (text: string) => Promise<string | undefined>): Promise<string[] | undefined> => {
  if (card.kind !== 'question') {
    const line = await ask(`${choices(card)} > `)
    return line
      ?.trim()
      .split(/\s+(.*)/s)
      .filter(Boolean)
  }
  const words: string[] = []
  for (const { header } of card.questions) {
    const line = await ask(`${card.questions.length > 1 ? `${header}: ` : ''}number or words > `)
    if (line === undefined) return undefined
    words.push(line.trim())
  }
  return words
}
