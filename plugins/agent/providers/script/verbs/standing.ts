import type { PermissionMode } from '../../../turn/frames/frames.js'
import { malformed, whole } from '../argument.js'
import { type ScriptVerb, verb } from '../verb.js'

const MOST_WAIT_MS = 86_400_000
const MODES: readonly string[] = ['default', 'acceptEdits', 'plan', 'bypassPermissions'] satisfies PermissionMode[]

interface Wait {
  readonly words: boolean
  readonly ms?: number
}

/** How long a turn stands still, and what it may do from here on. */
export const standing: { readonly [name: string]: ScriptVerb } = {
  wait: verb<Wait>({
    form: 'wait MS, wait words [MS]',
    help: 'waits, or waits for words said into the turn; $words',
    lineless: true,
    read: ({ text }) => {
      const form = `wait MS or wait words [MS], at most ${MOST_WAIT_MS} ms`
      if (text === 'words') return { words: true }
      if (!/^words\s/.test(text)) return { words: false, ms: whole(form, text, MOST_WAIT_MS) }
      return { words: true, ms: whole(form, text.slice(5).trim(), MOST_WAIT_MS) }
    },
    run: ({ words, ms }, script) => (words ? script.words(ms) : script.wait(ms!)),
  }),
  mode: verb<{ readonly mode: PermissionMode }>({
    form: 'mode MODE',
    help: 'default, acceptEdits, plan or bypassPermissions',
    lineless: true,
    read: ({ text }) =>
      MODES.includes(text) ? { mode: text as PermissionMode } : malformed(`a mode (${MODES.join(', ')})`, text),
    run: ({ mode }, script) => script.mode(mode),
  }),
}
