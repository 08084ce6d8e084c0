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
    run: async function* ({ description, prompt }, script) {
      const target = script.text(description).slice(0, 2000).toWellFormed()
      const input = { description: target, prompt, background }
      const { text } = yield* script.call({ name: 'Delegate', category: 'other', target, input, once: true })
      script.note({ out: kept(chomp(text)) })
    },
  })

/** Subagents: turns of their own for a part of the work. */
export const helping: { readonly [name: string]: ScriptVerb } = {
  helper: helper(
    'helper',
    false,
    'gives a subagent the | lines below as its script (its own lines carry one | more); $out is what it said last',
  ),
  'helper&': helper('helper&', true, 'the same beside the rest of this script'),
  join: verb({
    form: 'join',
    help: 'waits for all subagents beside this script; $out is what became of each',
    lineless: true,
    read: ({ text }) => (text === '' ? {} : malformed('join alone on its line', `join ${text}`)),
    run: async function* (_, script) {
      const { text } = yield* script.call({ name: 'Join', category: 'other', target: '', input: {} })
      script.note({ out: kept(chomp(text)) })
    },
  }),
}
