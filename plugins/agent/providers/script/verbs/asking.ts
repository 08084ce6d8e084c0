import type { CardReply, QuestionOption } from '../../../turn/frames.js'
import { joined, malformed, needed } from '../argument.js'
import { End, type ScriptContext, type ScriptFrames } from '../context.js'
import { kept } from '../texts.js'
import { type Argument, type ScriptVerb, verb } from '../verb.js'

interface Asked {
  readonly question: string
  readonly several: boolean
  readonly options: readonly QuestionOption[]
}

/** Says by a failed call that there is nobody to ask. */
export const unasked = (hand: ScriptContext, name: string): ScriptFrames => {
  hand.note({ answer: '' })
  const sentence = 'nobody watches this turn, so no question can be put to anybody'
  return hand.without({ name, category: 'think', target: '', input: {} }, sentence)
}

const option = (line: string): QuestionOption => {
  const colon = line.indexOf(':')
  const label = (colon === -1 ? line : line.slice(0, colon)).trim()
  return label === ''
    ? malformed('a line of the form label: description', line)
    : { label, description: colon === -1 ? '' : line.slice(colon + 1).trim() }
}

const question =
  (name: string, several: boolean) =>
  ({ text, lines }: Argument): Asked => {
    const options = lines.map(option)
    const labels = new Set(options.map(({ label }) => label))
    const twice = options.find(({ label }) => !labels.delete(label))
    if (twice) malformed('labels that differ', twice.label)
    return { question: needed(`${name} QUESTION`, text), several, options }
  }

async function* ask({ question, several, options }: Asked, hand: ScriptContext): ScriptFrames {
  if (!hand.request.attended) return yield* unasked(hand, 'Ask')
  const text = hand.text(question)
  const shown = options.map(({ label, description }) => ({
    label: hand.text(label),
    description: hand.text(description),
  }))
  const reply = await hand.raise({
    kind: 'question',
    questions: [{ question: text, header: 'Question', multiSelect: several, options: shown }],
  })
  if (reply?.kind === 'question' && reply.cancelled) throw new End()
  hand.note({ answer: kept(answerOf(reply, text)) })
}

const answerOf = (reply: CardReply | undefined, question: string): string => {
  const answers = reply?.kind === 'question' ? reply.answers : undefined
  const answer = answers && Object.hasOwn(answers, question) ? answers[question]! : ''
  return typeof answer === 'string' ? answer : answer.join(', ')
}

/** What a script asks of a person. */
export const asking: { readonly [name: string]: ScriptVerb } = {
  ask: verb<Asked>({
    form: 'ask QUESTION',
    help: 'asks; below it lines "| label: description"; $answer',
    read: question('ask', false),
    run: ask,
  }),
  'ask*': verb<Asked>({
    form: 'ask* QUESTION',
    help: 'asks, and takes several answers',
    read: question('ask*', true),
    run: ask,
  }),
  plan: verb<{ readonly text: string }>({
    form: 'plan TEXT',
    help: 'puts up a plan (also: lines below); a no ends the turn',
    read: argument => ({ text: needed('plan TEXT, or lines that begin with |', joined(argument)) }),
    run: async function* ({ text }, hand): ScriptFrames {
      if (!hand.request.attended) return yield* unasked(hand, 'Plan')
      const reply = await hand.raise({ kind: 'plan', text: hand.text(text) })
      const { mode } = hand.saved
      const plan = reply?.kind === 'plan' ? reply : undefined
      if (plan?.approve) return hand.mode(mode === 'plan' ? 'bypassPermissions' : mode)
      yield* hand.say(plan?.feedback || 'The plan was not approved, so nothing more is done.')
      throw new End()
    },
  }),
  permit: verb<{ readonly tool: string; readonly sentence: string }>({
    form: 'permit TOOL: SENTENCE',
    help: 'asks for permission; $answer is once, always or deny',
    lineless: true,
    read: ({ text }) => {
      const colon = text.indexOf(':')
      const [tool, sentence] = [text.slice(0, Math.max(colon, 0)).trim(), text.slice(colon + 1).trim()]
      return tool && sentence ? { tool, sentence } : malformed('permit TOOL: SENTENCE', text)
    },
    run: async function* ({ tool, sentence }, hand): ScriptFrames {
      if (!hand.request.attended) return yield* unasked(hand, 'Permit')
      const reply = await hand.raise({
        kind: 'permission',
        toolName: hand.text(tool),
        description: hand.text(sentence),
      })
      hand.note({ answer: reply?.kind === 'permission' ? reply.decision : 'deny' })
    },
  }),
}
