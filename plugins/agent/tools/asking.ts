import type { CardReply, Question } from '../turn/frames/frames.js'
import type { AskQuestion } from './contract.js'
import { done, failed, tool } from './tool.js'

const NOBODY = 'nobody watches this turn, so nothing can be put to anybody'
const answerOf = (reply: CardReply & { kind: 'question' }, question: string): string => {
  const answer = reply.answers && Object.hasOwn(reply.answers, question) ? reply.answers[question]! : []
  return [answer].flat().join(', ') || '(skipped)'
}

const hasTwice = (texts: readonly string[]): boolean => new Set(texts).size < texts.length

/** A question as its card shows it. */
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

/** Puts questions to the person; the answers, one a line. */
export const ask = tool('Ask', {
  category: 'think',
  refine: ({ questions }, misfit) => {
    for (const [at, { options }] of questions.entries())
      if (hasTwice(options.map(({ label }) => label)))
        misfit(`questions.${at}.options`, 'labels that differ', 'the same one twice')
    if (hasTwice(questions.map(({ question }) => question)))
      misfit('questions', 'questions that differ', 'the same one twice')
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

/** Puts a plan to the person; a yes lets a turn in plan mode do what it says. */
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
