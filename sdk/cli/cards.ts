import { createInterface } from 'node:readline'
import type { Card, CardReply, Question } from '../../plugins/agent/contract.js'
import { quoted } from './text.js'
import { misused, type Terminal } from './verb.js'

const YES = new Set(['yes', 'y', 'approve', 'ok'])
const NO = new Set(['no', 'n', 'reject'])

/** What a card can be answered with, in one line. */
export const choices = (card: Card): string => {
  if (card.kind === 'plan') return 'yes, or no and what to change'
  if (card.kind === 'permission') return card.alwaysLabel ? 'once, always or deny' : 'once or deny'
  return 'a number, a label or your own words for each question'
}

/** The reply that words on the command line mean; words left over or missing are a usage error. */
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
    if (decision !== 'once' && decision !== 'always' && decision !== 'deny') return misused(`expected ${choices(card)}, found ${first || 'nothing'}`)
    return { kind: 'permission', requestId, decision, ...(feedback && { feedback }) }
  }
  if (words.length > card.questions.length) misused(`expected ${card.questions.length} answers, found ${words.length}: quote an answer of several words`)
  const answers = Object.fromEntries(card.questions.flatMap((question, at) => (words[at] ? [[question.question, chosen(question, words[at])]] : [])))
  return { kind: 'question', requestId, ...(Object.keys(answers).length && { answers }) }
}

const chosen = ({ options, multiSelect }: Question, words: string): string | string[] => {
  const one = (word: string) => (/^\d+$/.test(word) ? options[Number(word) - 1]?.label : undefined) ?? word
  if (!multiSelect) return one(words.trim())
  return words.split(',').map(word => one(word.trim())).filter(Boolean)
}

/** The answer nobody had to think about: the first choice there is. */
export const firstChoice = (card: Card): CardReply =>
  replyFrom(card, card.kind === 'plan' ? ['yes'] : card.kind === 'permission' ? ['once'] : card.questions.map(({ options }) => (options.length ? '1' : '')))

/** The command that answers a card from another terminal. */
export const answerCommand = (card: Card): string => {
  const words = card.kind === 'plan' ? ['yes'] : card.kind === 'permission' ? ['once'] : card.questions.map(({ options }) => options[0]?.label ?? 'your words')
  return ['npx sandbox answer', ...[card.requestId, ...words].map(quoted)].join(' ')
}

/** Asks the person at the terminal; undefined when the signal came first or the input ended. */
export const askPerson = async (terminal: Pick<Terminal, 'in' | 'out'>, card: Card, signal: AbortSignal): Promise<CardReply | undefined> => {
  if (signal.aborted) return undefined
  const lines = createInterface({ input: terminal.in, output: terminal.out })
  const typed = lines[Symbol.asyncIterator]()
  const ask = async (prompt: string): Promise<string | undefined> => {
    lines.setPrompt(prompt)
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
        terminal.out.write(`${(error as Error).message}\n`)
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
    return line?.trim().split(/\s+(.*)/s).filter(Boolean)
  }
  const words: string[] = []
  for (const { header } of card.questions) {
    const line = await ask(`${card.questions.length > 1 ? `${header}: ` : ''}number or words > `)
    if (line === undefined) return undefined
    words.push(line.trim())
  }
  return words
}
