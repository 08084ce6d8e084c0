import type { CardReply, Question } from '../turn/frames/frames.js'
import type { AskQuestion } from './contract.js'
import { done, failed, tool } from './tool.js'

const NOBODY = 'nobody watches this turn, so nobody can answer a question'
const answerOf = (reply: CardReply & { kind: 'question' }, question: string): string => {
  const answer = reply.answers && Object.hasOwn(reply.answers, question) ? reply.answers[question]! : []
  return [answer].flat().join(', ') || '(skipped)'
}

const hasTwice = (texts: readonly string[]): boolean => new Set(texts).size < texts.length

/** The part of a card for one question. */
const cardOf = ({ question, header = 'Question', multiSelect = false, options }: AskQuestion): Question => ({
  question,
  header,
  multiSelect,
  options: options.map(({ label, description = '', preview }) => ({
    label,
    description,
    ...(preview !== undefined && { preview }),
  })),
})

/** Asks the person questions and returns the answers, one per line. */
export const ask = tool('Ask', {
  category: 'think',
  refine: ({ questions }, misfit) => {
    for (const [at, { options }] of questions.entries())
      if (hasTwice(options.map(({ label }) => label))) misfit(`questions.${at}.options`, 'unique labels', 'a duplicate')
    if (hasTwice(questions.map(({ question }) => question))) misfit('questions', 'unique questions', 'a duplicate')
  },
  describe: ({ questions }) => ({ target: questions[0]!.question.slice(0, 200) }),
  run: async ({ questions }, { person }) => {
    if (!person.attends) return failed(NOBODY)
    const reply = await person.ask({ kind: 'question', questions: questions.map(cardOf) })
    if (reply?.kind !== 'question') return failed('nobody answered')
    if (reply.cancelled) return failed('the person cancelled the question')
    return done(questions.map(({ question }) => `${question}: ${answerOf(reply, question)}`).join('\n'))
  },
})

/** Asks the person to approve a plan; approval ends plan mode. */
export const plan = tool('Plan', {
  category: 'think',
  describe: ({ text }) => ({ target: text.trim().split('\n', 1)[0]!.slice(0, 200) }),
  run: async ({ text }, { person }) => {
    if (!person.attends) return failed(NOBODY)
    const reply = await person.ask({ kind: 'plan', text })
    if (reply?.kind !== 'plan') return failed('nobody answered')
    const words = reply.feedback ? `: ${reply.feedback}` : ''
    if (!reply.approve) return failed(`the plan was not approved${words}`)
    person.approved()
    return done(`the plan was approved${words}`)
  },
})
