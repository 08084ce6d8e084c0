import { malformed, parts, whole } from '../argument.js'
import { type Verb, verb } from '../verb.js'

const MOST_TOKENS = 4_294_967_295

interface Usage {
  readonly input: number
  readonly output: number
  readonly costUsd?: number
}

/** What a model's server would tell of the turn's account. */
export const accounting: { readonly [name: string]: Verb } = {
  usage: verb<Usage>({
    form: 'usage IN OUT [USD]',
    help: 'what the turn counts as having cost',
    lineless: true,
    read: ({ text }) => {
      const form = 'usage IN OUT [USD]'
      const [input, output, usd] = parts(form, text, 3)
      if (usd !== undefined && !/^\d{1,9}(\.\d{1,9})?$/.test(usd)) malformed(form, text)
      const tokens = { input: whole(form, input, MOST_TOKENS), output: whole(form, output, MOST_TOKENS) }
      return { ...tokens, ...(usd !== undefined && { costUsd: Number(usd) }) }
    },
    run: (usage, hand) => hand.note({ usage }),
  }),
}
