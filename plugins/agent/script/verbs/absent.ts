import type { ToolCategory } from '../../frames.js'
import { type Verb, verb } from '../verb.js'

interface Absence {
  readonly form: string
  readonly tool: string
  readonly category: ToolCategory
  readonly needs: string
}

/** A verb that opens a tool call, closes it as failed with a reason, and lets the script go on. */
const without = (name: string, { form, tool, category, needs }: Absence): Verb =>
  verb<{ readonly text: string }>({
    form,
    help: `not available yet: it needs ${needs}`,
    read: ({ text }) => ({ text }),
    run: ({ text }, hand) => {
      const lack = `${name} is not available in this sandbox yet: it needs ${needs}; the script goes on`
      return hand.without({ name: tool, category, target: hand.text(text), input: {} }, lack)
    },
  })

const ABSENT: { readonly [name: string]: Absence } = {
  search: { form: 'search QUERY', tool: 'Search', category: 'search', needs: 'the search index' },
  browse: { form: 'browse URL', tool: 'Browser', category: 'execute', needs: 'a browser for agents' },
  handover: {
    form: 'handover browser|terminal MESSAGE', tool: 'Handover', category: 'other',
    needs: 'a browser or terminal to hand over',
  },
  need: { form: 'need KIND TITLE', tool: 'Need', category: 'other', needs: 'the list of needs' },
  propose: { form: 'propose PLATFORM TARGET', tool: 'Propose', category: 'other', needs: 'approvals' },
  helper: { form: 'helper DESCRIPTION', tool: 'Delegate', category: 'other', needs: 'helper agents' },
  'helper&': { form: 'helper& DESCRIPTION', tool: 'Delegate', category: 'other', needs: 'helper agents' },
  join: { form: 'join', tool: 'Join', category: 'other', needs: 'helper agents' },
  verdict: {
    form: 'verdict done|not-done REASON', tool: 'Verdict', category: 'other',
    needs: 'a loop or workflow that asked for a document',
  },
  die: { form: 'die', tool: 'Die', category: 'other', needs: 'an agent program of its own that could end' },
}

/** Verbs of the language that need a part of the sandbox which is not there. */
export const absent: { readonly [name: string]: Verb } =
  Object.fromEntries(Object.entries(ABSENT).map(([name, absence]) => [name, without(name, absence)]))
