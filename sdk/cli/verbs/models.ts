import { askedAs } from '../calls/asked-as.js'
import { plain } from '../terminal/text.js'
import { CONNECTION, misused, type Verb } from '../verb.js'

const USUAL = 200
const MOST = 500

/** Lists the models that a turn can run on. */
export const modelsVerb: Verb = {
  name: 'models',
  usage: '[TEXT]',
  summary: 'list the models that a turn can run on',
  examples: ['models', 'models sonnet', 'models --all --agent openai'],
  notes: [
    'TEXT is a part of the name of a model. A turn runs on one with run --agent AGENT --model MODEL.',
    'Without --all it lists only models that are ready.',
  ],
  flags: {
    all: { help: 'also list models that are not ready, with the reason' },
    agent: { value: 'PROVIDER', help: 'only models of this provider, such as endpoint/desk' },
    limit: { value: 'N', help: `the most models to list; default: ${USUAL}, at most ${MOST}` },
    ...CONNECTION,
  },
  most: 1,
  run: (terminal, given) => {
    const [q] = given.args
    const [provider, limit] = [given.text('agent'), given.text('limit') ?? String(USUAL)]
    if (!/^[1-9]\d{0,2}$/.test(limit) || Number(limit) > MOST)
      misused(`--limit: expected a number from 1 to ${MOST}, found ${plain(limit)}`)
    const input = {
      limit: Number(limit),
      ...(q !== undefined && { q }),
      ...(provider !== undefined && { provider }),
      ...(!given.on('all') && { ready: '1' as const }),
    }
    return askedAs(terminal, given, ['providers', 'choices'], (client, options) =>
      client.call('GET /providers/models', input, options),
    )
  },
}
