import { malformed } from '../argument.js'
import type { ScriptFrames } from '../context.js'
import type { ToolUse } from '../use.js'
import { type ScriptVerb, verb } from '../verb.js'

const FORM = 'verdict done REASON, verdict not-done REASON'

interface Verdict {
  readonly done: boolean
  readonly reason: string
  /** Further fields, as one JSON object. */
  readonly more: string
}

const fieldsOf = (more: string): object => {
  if (more.trim() === '') return {}
  try {
    const fields: unknown = JSON.parse(more)
    if (typeof fields === 'object' && fields !== null && !Array.isArray(fields)) return fields
  } catch {
    // Told below.
  }
  return malformed('one JSON object below verdict', more)
}

/** Writes the document that a loop asks for. */
export const verdicts: { readonly [name: string]: ScriptVerb } = {
  verdict: verb<Verdict>({
    form: FORM,
    help: 'writes the document of a loop; a JSON object below it adds fields or replaces them',
    read: ({ text, lines }) => {
      const [, done, reason] = /^(done|not-done)\s+(\S[^\n]*)$/.exec(text) ?? malformed(FORM, text)
      const more = lines.join('\n')
      fieldsOf(more)
      return { done: done === 'done', reason: reason!, more }
    },
    run: async function* ({ done, reason, more }, script): ScriptFrames {
      const { document } = script.request
      if (document === undefined) {
        const use: ToolUse = { name: 'Verdict', category: 'other', target: reason, input: {} }
        return yield* script.without(use, 'nobody asked this turn for a document; the script goes on')
      }
      const content = JSON.stringify({ done, reason: script.text(reason), ...fieldsOf(more) }, undefined, 2)
      yield* script.call({
        ...{ name: 'Write', category: 'edit', target: document },
        ...{ input: { path: document, content: `${content}\n` }, changes: [document] },
      })
    },
  }),
}
