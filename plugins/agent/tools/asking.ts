import type { CardReply, Question, QuestionOption } from '../turn/frames.js'
import { done, failed, Fields, tool } from './tool.js'

const NOBODY = 'nobody watches this turn, so nothing can be put to anybody'
const MOST_QUESTIONS = 10
const MOST_OPTIONS = 20

const listOf = (fields: Fields, name: string, most: number): readonly unknown[] => {
  const list = fields.value(name)
  return Array.isArray(list) && list.length <= most ? list : fields.wrong(name, `a list of at most ${most}`, list)
}

const optionOf = (value: unknown, at: string): QuestionOption => {
  const fields = new Fields(`Ask (${at})`, value)
  const preview = fields.value('preview') === undefined ? undefined : fields.text('preview', { most: 20_000 })
  const description = fields.value('description') === undefined ? '' : fields.text('description', { most: 2000 })
  return {
    label: fields.text('label', { least: 1, most: 200 }),
    description,
    ...(preview !== undefined && { preview }),
  }
}

const questionOf = (value: unknown, at: number): Question => {
  const fields = new Fields(`Ask (questions.${at})`, value)
  const options = listOf(fields, 'options', MOST_OPTIONS).map((option, index) =>
    optionOf(option, `questions.${at}.options.${index}`),
  )
  const labels = new Set(options.map(({ label }) => label))
  if (labels.size < options.length) fields.wrong('options', 'labels that differ', 'the same one twice')
  return {
    question: fields.text('question', { least: 1, most: 4000 }),
    header: fields.value('header') === undefined ? 'Question' : fields.text('header', { most: 80 }),
    multiSelect: fields.flag('multiSelect'),
    options,
  }
}

const answerOf = (reply: CardReply & { kind: 'question' }, question: string): string => {
  const answer = reply.answers && Object.hasOwn(reply.answers, question) ? reply.answers[question]! : []
  return [answer].flat().join(', ') || '(skipped)'
}

/** Puts questions to the person; the answers, one a line. */
export const ask = tool<{ readonly questions: Question[] }>({
  category: 'think',
  check: input => {
    const fields = new Fields('Ask', input)
    const questions = listOf(fields, 'questions', MOST_QUESTIONS).map(questionOf)
    const asked = new Set(questions.map(({ question }) => question))
    if (questions.length === 0) fields.wrong('questions', 'at least one', undefined)
    if (asked.size < questions.length) fields.wrong('questions', 'questions that differ', 'the same one twice')
    return { questions }
  },
  describe: ({ questions }) => ({ target: questions[0]!.question.slice(0, 200) }),
  run: async ({ questions }, { person }) => {
    if (!person.attends) return failed(NOBODY)
    const reply = await person.ask({ kind: 'question', questions })
    if (reply?.kind !== 'question') return failed('nobody answered')
    if (reply.cancelled) return failed('the person cancelled the question')
    return done(questions.map(({ question }) => `${question}: ${answerOf(reply, question)}`).join('\n'))
  },
})

/** Puts a plan to the person; a yes lets a turn in plan mode do what it says. */
export const plan = tool<{ readonly text: string }>({
  category: 'think',
  check: input => ({ text: new Fields('Plan', input).text('text', { least: 1, most: 100_000 }) }),
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
