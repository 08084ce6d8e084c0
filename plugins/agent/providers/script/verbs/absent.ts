import type { ToolCategory } from '../../../turn/frames/frames.js'
import { malformed } from '../argument.js'
import { type ScriptVerb, verb } from '../verb.js'

interface Absence {
  readonly form: string
  /** What stands behind the verb. */
  readonly fits: RegExp
  /** Takes lines below it. */
  readonly lines?: true
  readonly tool: string
  readonly category: ToolCategory
  readonly needs: string
}

/** A verb that opens a tool call, closes it as failed with a reason, and lets the script go on. */
const without = (name: string, { form, fits, lines, tool, category, needs }: Absence): ScriptVerb =>
  verb<{ readonly text: string }>({
    form,
    help: `not available yet: it needs ${needs}`,
    ...(!lines && { lineless: true }),
    read: ({ text }) => (fits.test(text) ? { text } : malformed(form, text)),
    run: ({ text }, script) => {
      const lack = `${name} is not available in this sandbox yet: it needs ${needs}; the script goes on`
      return script.without({ name: tool, category, target: script.text(text), input: {} }, lack)
    },
  })

const ABSENT: { readonly [name: string]: Absence } = {
  die: { form: 'die', fits: /^$/, tool: 'Die', category: 'other', needs: 'an agent program of its own that could end' },
}

/** Verbs of the language that need a part of the sandbox which is not there. */
export const absent: { readonly [name: string]: ScriptVerb } = Object.fromEntries(
  Object.entries(ABSENT).map(([name, absence]) => [name, without(name, absence)]),
)
