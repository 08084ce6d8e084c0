import type { UsageRollup, UsageRow } from '../../../plugins/usage/contract.js'
import { asked } from '../terminal/asked.js'
import { columns, counted, oneLine } from '../terminal/text.js'
import { moneyWords, numberWords } from '../terminal/values.js'
import { CONNECTION, misused, type Verb } from '../verb.js'

type RowKey = 'day' | 'provider' | 'account' | 'model' | 'harness' | 'conversationId' | 'persona'
const FIELDS: { readonly [key: string]: RowKey } = {
  day: 'day',
  provider: 'provider',
  account: 'account',
  model: 'model',
  harness: 'harness',
  conversation: 'conversationId',
  persona: 'persona',
}
const BY = 'day'

/** Shows what turns cost. */
export const usage: Verb = {
  name: 'usage',
  group: 'usage',
  usage: '',
  summary: 'show what turns cost, by day, model and other keys',
  examples: ['usage', 'usage --by day,model', 'usage --from 2026-11-01 --to 2026-11-30 --by persona'],
  notes: [`Keys of --by: ${Object.keys(FIELDS).join(', ')}. Days are in UTC.`],
  flags: {
    by: { value: 'KEYS', help: `what to group by, with commas; default: ${BY}` },
    from: { value: 'DAY', help: 'the first day, such as 2026-11-01' },
    to: { value: 'DAY', help: 'the last day' },
    ...CONNECTION,
  },
  most: 0,
  run: (terminal, given) => {
    const keys = (given.text('by') ?? BY).split(',').map(word => word.trim())
    const wrong = keys.find(key => !Object.hasOwn(FIELDS, key))
    if (wrong !== undefined)
      return misused(`--by: expected keys of ${Object.keys(FIELDS).join(', ')} with commas, found ${oneLine(wrong)}`)
    const [from, to] = [given.text('from'), given.text('to')]
    return asked(
      terminal,
      given,
      (client, options) =>
        client.call(
          'GET /usage/rollup',
          { by: keys.join(), ...(from !== undefined && { from }), ...(to !== undefined && { to }) },
          options,
        ),
      (found, width) => tableOf(found, keys, width),
    )
  },
}

const tableOf = (
  { rows, total }: UsageRollup,
  keys: readonly string[],
  width: number | undefined,
): string | string[] => {
  if (rows.length === 0) return 'no usage in this time'
  const named = rows.map(row => [...keys.map(key => oneLine(row[FIELDS[key]!] ?? '-')), ...figuresOf(row)])
  const all = [...keys.map((_, at) => (at === 0 ? 'total' : '')), ...figuresOf(total)]
  const header = [...keys.map(key => key.toUpperCase()), 'TURNS', 'IN', 'OUT', 'CACHED', 'COST']
  const note = total.unpriced > 0 ? ['', `The price of ${counted(total.unpriced, 'turn')} is unknown.`] : []
  return [...columns([header, ...named, all], width), ...note]
}

const figuresOf = (row: UsageRow): string[] => [
  numberWords(row.turns),
  numberWords(row.inputTokens),
  numberWords(row.outputTokens),
  numberWords(row.cacheReadTokens + row.cacheCreationTokens),
  moneyWords(row.costUsd),
]
