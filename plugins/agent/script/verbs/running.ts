import { needed } from '../argument.js'
import type { Hand, Step } from '../hand.js'
import { chomp, kept } from '../texts.js'
import type { Use } from '../use.js'
import { type Verb, verb } from '../verb.js'

/** Runs something once, whatever restarts: `$out` and `$exit` tell what became of it. */
async function* ran(hand: Hand, use: Use): Step {
  const { ok, text, exit } = yield* hand.call({ ...use, once: true })
  hand.note({ out: kept(chomp(text)), exit: String(exit ?? (ok ? 0 : 1)) })
}

/** Programs and the network. */
export const running: { readonly [name: string]: Verb } = {
  run: verb<{ readonly command: string }>({
    form: 'run COMMAND',
    help: 'runs it in the shell; $exit and $out',
    lineless: true,
    read: ({ text }) => ({ command: needed('run COMMAND', text) }),
    run: (input, hand) => {
      const command = hand.text(input.command)
      return ran(hand, { name: 'Shell', category: 'execute', target: command, input: { command } })
    },
  }),
}
