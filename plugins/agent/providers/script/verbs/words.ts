import { joined, malformed, needed } from '../argument.js'
import { End, type ScriptFrames } from '../context.js'
import { kept } from '../texts.js'
import { type Argument, type ScriptVerb, verb } from '../verb.js'

interface Prose {
  readonly text: string
}

const prose =
  (name: string) =>
  (argument: Argument): Prose => ({ text: needed(`${name} TEXT, or lines that begin with |`, joined(argument)) })

/** What a script says and thinks, and how it ends. */
export const sayingVerbs: { readonly [name: string]: ScriptVerb } = {
  say: verb<Prose>({
    form: 'say TEXT',
    help: 'says it, word by word (also: lines below that begin with |)',
    quiet: true,
    read: prose('say'),
    run: ({ text }, script) => script.say(script.text(text)),
  }),
  think: verb<Prose>({
    form: 'think TEXT',
    help: 'thinks it',
    quiet: true,
    read: prose('think'),
    run: async function* ({ text }, script): ScriptFrames {
      const thought = script.text(text)
      script.note({ spoken: script.saved.spoken + thought.length })
      if (!script.replay.thought()) yield { kind: 'thinking', text: kept(thought) }
    },
  }),
  expect: verb<Prose>({
    form: 'expect TEXT',
    help: 'fails the turn unless $out contains it',
    read: argument => ({ text: needed('expect TEXT', joined(argument)) }),
    run: (input, script) => {
      const [text, { out }] = [script.text(input.text), script.saved]
      if (out.includes(text)) return
      return script.fail(`expected "${text.slice(0, 200)}" in the output, found "${out.slice(0, 200)}"`)
    },
  }),
  fail: verb<Prose>({
    form: 'fail MESSAGE',
    help: 'ends the turn as failed',
    read: prose('fail'),
    run: ({ text }, script) => script.fail(script.text(text)),
  }),
  stop: verb({
    form: 'stop',
    help: 'ends here, completed',
    lineless: true,
    read: ({ text }) => (text === '' ? {} : malformed('stop alone on its line', `stop ${text}`)),
    run: () => {
      throw new End()
    },
  }),
}
