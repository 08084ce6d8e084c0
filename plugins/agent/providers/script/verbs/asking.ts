import type { CardReply, QuestionOption } from '../../../turn/frames/frames.js'
import { joined, malformed, needed } from '../argument.js'
import { End, type ScriptContext, type ScriptFrames } from '../context.js'
import { kept } from '../texts.js'
import { type Argument, type ScriptVerb, verb } from '../verb.js'

interface Asked {
  readonly question: string
  readonly several: boolean
  readonly options: readonly QuestionOption[]
}

/** Fails the call because nobody watches the turn. */
export const unasked = (script: ScriptContext, name: string): ScriptFrames => {
  script.note({ answer: '' })
  const sentence = 'nobody watches this turn, so nobody can answer a question'
  return script.without({ name, category: 'think', target: '', input: {} }, sentence)
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

async function* ask({ question, several, options }: Asked, script: ScriptContext): ScriptFrames {
  if (!script.request.attended) return yield* unasked(script, 'Ask')
  const text = script.text(question)
  const shown = options.map(({ label, description }) => ({
    label: script.text(label),
    description: script.text(description),
  }))
  const reply = await script.raise({
    kind: 'question',
    questions: [{ question: text, header: 'Question', multiSelect: several, options: shown }],
  })
  if (reply?.kind === 'question' && reply.cancelled) throw new End()
  script.note({ answer: kept(answerOf(reply, text)) })
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
    run: async function* ({ text }, script): ScriptFrames {
      if (!script.request.attended) return yield* unasked(script, 'Plan')
      const reply = await script.raise({ kind: 'plan', text: script.text(text) })
      const { mode } = script.saved
      const plan = reply?.kind === 'plan' ? reply : undefined
      if (plan?.approve) return script.mode(mode === 'plan' ? 'bypassPermissions' : mode)
      yield* script.say(plan?.feedback || 'The plan was not approved, so nothing more is done.')
      throw new End()
    },
  }),
  need: verb<{ readonly kind: string; readonly title: string; readonly why: string }>({
    form: 'need KIND TITLE',
    help: 'asks for what only a person can give; below it lines say why',
    read: ({ text, lines }) => {
      const [, kind = '', title = ''] = /^(\S+)\s+(\S[^]*)$/.exec(text) ?? malformed('need KIND TITLE', text)
      return { kind, title, why: lines.join('\n') }
    },
    run: async function* (asked, script): ScriptFrames {
      const [title, why] = [script.text(asked.title), script.text(asked.why || asked.title)]
      const use = { name: 'Need', category: 'other', target: title, input: { kind: asked.kind, title, why } } as const
      const { text } = yield* script.call({ ...use, once: true })
      script.note({ out: kept(text) })
    },
  }),
  handover: verb<{ readonly surface: string; readonly message: string }>({
    form: 'handover browser MESSAGE, handover terminal MESSAGE',
    help: 'hands the browser or a terminal to the person who watches; $out is the answer',
    lineless: true,
    read: ({ text }) => {
      const [, surface = '', message = ''] =
        /^(browser|terminal)\s+(\S[^]*)$/.exec(text)
        ?? malformed('handover browser MESSAGE or handover terminal MESSAGE', text)
      return { surface, message }
    },
    run: async function* ({ surface, message }, script): ScriptFrames {
      const input = { surface, message: script.text(message) }
      const { text } = yield* script.call({ name: 'Handover', category: 'other', target: input.message, input })
      script.note({ out: kept(text) })
    },
  }),
  connect: verb<{ readonly card: string; readonly why: string }>({
    form: 'connect CARD WHY',
    help: 'offers the person who watches to connect something of the catalogue; $out is the answer',
    lineless: true,
    read: ({ text }) => {
      const [, card = '', why = ''] = /^(\S+)\s+(\S[^]*)$/.exec(text) ?? malformed('connect CARD WHY', text)
      return { card, why }
    },
    run: async function* (asked, script): ScriptFrames {
      const [card, why] = [script.text(asked.card), script.text(asked.why)]
      const { text } = yield* script.call({ name: 'Connect', category: 'other', target: card, input: { card, why } })
      script.note({ out: kept(text) })
    },
  }),
  pay: verb<{ readonly url: string; readonly why: string }>({
    form: 'pay URL WHY',
    help: 'sends a request and pays what the server asks for, from a connected wallet; $out is the answer',
    lineless: true,
    read: ({ text }) => {
      const [, url = '', why = ''] = /^(\S+)\s+(\S[^]*)$/.exec(text) ?? malformed('pay URL WHY', text)
      return { url, why }
    },
    run: async function* (asked, script): ScriptFrames {
      const input = { url: script.text(asked.url), why: script.text(asked.why) }
      const { text } = yield* script.call({ name: 'Pay', category: 'fetch', target: input.url, input })
      script.note({ out: kept(text) })
    },
  }),
  propose: verb<{ readonly platform: string; readonly target: string; readonly content: string }>({
    form: 'propose PLATFORM TARGET',
    help: 'proposes a post for a person to allow; the lines below it are what is posted',
    read: ({ text, lines }) => {
      const [, platform = '', target = ''] =
        /^(\S+)\s+(\S[^]*)$/.exec(text) ?? malformed('propose PLATFORM TARGET', text)
      return { platform, target, content: lines.join('\n') }
    },
    run: async function* (asked, script): ScriptFrames {
      const [target, content] = [script.text(asked.target), script.text(asked.content)]
      const input = { kind: 'post', post: { platform: asked.platform, target, content } }
      const { text } = yield* script.call({ name: 'Propose', category: 'other', target, input, once: true })
      script.note({ out: kept(text) })
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
    run: async function* ({ tool, sentence }, script): ScriptFrames {
      if (!script.request.attended) return yield* unasked(script, 'Permit')
      const reply = await script.raise({
        kind: 'permission',
        toolName: script.text(tool),
        description: script.text(sentence),
      })
      script.note({ answer: reply?.kind === 'permission' ? reply.decision : 'deny' })
    },
  }),
}
