import { askedAs } from '../calls/asked-as.js'
import { oneLine } from '../terminal/text.js'
import { CONNECTION, misused, type Verb } from '../verb.js'

const KEYS = ['day', 'provider', 'account', 'model', 'harness', 'conversation', 'persona']
const BY = 'day'

/** Shows what turns cost. */
export const usage: Verb = {
  name: 'usage',
  group: 'usage',
  usage: '',
  summary: 'show what turns cost, by day, model and other keys',
  examples: ['usage', 'usage --by day,model', 'usage --from 2026-11-01 --to 2026-11-30 --by persona'],
  notes: [`Keys of --by: ${KEYS.join(', ')}. Days are in UTC.`],
  flags: {
    by: { value: 'KEYS', help: `what to group by, with commas; default: ${BY}` },
    from: { value: 'DAY', help: 'the first day, such as 2026-11-01' },
    to: { value: 'DAY', help: 'the last day' },
    ...CONNECTION,
  },
  most: 0,
  run: (terminal, given) => {
    const keys = (given.text('by') ?? BY).split(',').map(word => word.trim())
    const wrong = keys.find(key => !KEYS.includes(key))
    if (wrong !== undefined)
      return misused(`--by: expected keys of ${KEYS.join(', ')} with commas, found ${oneLine(wrong)}`)
    const [from, to] = [given.text('from'), given.text('to')]
    return askedAs(terminal, given, ['usage', 'rollup'], (client, options) =>
      client.call(
        'GET /usage/rollup',
        { by: keys.join(), ...(from !== undefined && { from }), ...(to !== undefined && { to }) },
        options,
      ),
    )
  },
}
