import type { StoredAnswer } from '../../../../plugins/secrets/contract.js'
import { askedAs } from '../../calls/asked-as.js'
import { asked } from '../../terminal/asked.js'
import { askHidden } from '../../terminal/hidden.js'
import { inputText } from '../../terminal/input.js'
import { SELF } from '../../terminal/own-name.js'
import { oneLine, plain } from '../../terminal/text.js'
import { sayStoreMade } from './store-note.js'
import { CommandFailure, CONNECTION, EXIT, misused, type GivenArguments, type Terminal, type Verb } from '../../verb.js'

const EXPECTED = 'secret set NAME, secret list, secret remove NAME or secret import FILE'

/** Stores, lists and removes the secret values that agents use by name. */
export const secret: Verb = {
  name: 'secret',
  usage: '[list | set NAME | remove NAME | import FILE]',
  summary: 'store the values that agents use as {{secret:NAME}}',
  examples: ['secret list', 'secret set API_TOKEN', 'secret set DEPLOY_KEY < id_ed25519', 'secret import .env'],
  notes: [
    'set prompts for the value, or reads it from standard input: others could see an argument. A line break at the '
      + 'end of a one-line value is removed.',
    'import reads a .env file of this machine, - for standard input; it skips names that are already stored.',
    'The first value makes an encrypted store, unlocked by a key file of this machine; '
      + `${SELF} secrets set-store kind=vault unlock=passphrase, for example, moves the values to another one.`,
  ],
  ids: { NAME: ['secrets', 'inventory'] },
  flags: {
    replace: { help: 'import: replace values that are already stored' },
    ...CONNECTION,
  },
  most: 2,
  run: async (terminal, given) => {
    const [what = 'list', name] = given.args
    if (what === 'list' && name === undefined)
      return askedAs(terminal, given, ['secrets', 'inventory'], (client, options) =>
        client.call('GET /secrets/inventory', undefined, options),
      )
    if (what === 'set' && name !== undefined) {
      const input = { key: name, value: await valueFor(terminal, name) }
      return asked(
        terminal,
        given,
        async (client, options) => withNote(terminal, given, await client.call('POST /secrets', input, options)),
        () => `stored ${plain(name)}: use it as {{secret:${plain(name)}}}`,
      )
    }
    if (what === 'remove' && name !== undefined)
      return asked(
        terminal,
        given,
        async (client, options) => {
          const answer = await client.call('DELETE /secrets/{key}', { key: name }, options)
          if (!answer.removed)
            throw new CommandFailure(EXIT.refused, `no secret is named ${plain(name)}; ${SELF} secret list names them`)
          return answer
        },
        () => `removed ${plain(name)}`,
      )
    if (what === 'import' && name !== undefined) return imported(terminal, given, name)
    return misused(`expected ${EXPECTED}, found secret ${given.args.map(plain).join(' ')}`)
  },
}

const imported = async (terminal: Terminal, given: GivenArguments, file: string): Promise<number> => {
  const input = { text: await inputText(terminal, file, 'import'), ...(given.on('replace') && { replace: true }) }
  return asked(
    terminal,
    given,
    async (client, options) => withNote(terminal, given, await client.call('POST /secrets/import', input, options)),
    ({ added, replaced, skipped }) => [
      ...added.map(key => `stored ${plain(key)}`),
      ...replaced.map(key => `replaced ${plain(key)}`),
      ...skipped.map(({ key, reason }) => `skipped ${oneLine(key)}: ${REASONS[reason]}`),
    ],
  )
}

const withNote = <T extends Pick<StoredAnswer, 'store'>>(terminal: Terminal, given: GivenArguments, answer: T): T => {
  if (answer.store === 'made') sayStoreMade(terminal, given)
  return answer
}

const REASONS = {
  exists: 'it is already stored (--replace replaces it)',
  empty: 'it has no value',
  'bad-name': 'its name is not valid for a secret',
  'not-chosen': 'it was not chosen',
} as const

const valueFor = async (terminal: Terminal, name: string): Promise<string> => {
  const value = terminal.in.isTTY
    ? await askHidden(terminal, `value of ${plain(name)}: `)
    : await inputText(terminal, '-', 'set')
  return /^[^\n]*\n$/.test(value) ? value.replace(/\r?\n$/, '') : value
}
