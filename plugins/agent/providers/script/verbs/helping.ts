import { malformed, needed } from '../argument.js'
import { chomp, kept } from '../texts.js'
import { type ScriptVerb, verb } from '../verb.js'

interface HelperInput {
  readonly description: string
  /** A script of its own, whose variables are its own too. */
  readonly prompt: string
}

const helper = (name: string, background: boolean, help: string): ScriptVerb =>
  verb<HelperInput>({
    form: `${name} DESCRIPTION`,
    help,
    read: ({ text, lines }) => ({ description: needed(`${name} DESCRIPTION`, text), prompt: lines.join('\n') || text }),
    run: async function* ({ description, prompt }, hand) {
      const target = hand.text(description).slice(0, 2000).toWellFormed()
      const input = { description: target, prompt, background }
      const { text } = yield* hand.call({ name: 'Delegate', category: 'other', target, input, once: true })
      hand.note({ out: kept(chomp(text)) })
    },
  })

/** Helpers: turns of their own for a part of the work. */
export const helping: { readonly [name: string]: ScriptVerb } = {
  helper: helper(
    'helper',
    false,
    'gives a helper the | lines below as its script (its own lines carry one | more); $out is what it said last',
  ),
  'helper&': helper('helper&', true, 'the same beside the rest of this script'),
  join: verb({
    form: 'join',
    help: 'waits for all helpers beside this script; $out is what became of each',
    lineless: true,
    read: ({ text }) => (text === '' ? {} : malformed('join alone on its line', `join ${text}`)),
    run: async function* (_, hand) {
      const { text } = yield* hand.call({ name: 'Join', category: 'other', target: '', input: {} })
      hand.note({ out: kept(chomp(text)) })
    },
  }),
}
