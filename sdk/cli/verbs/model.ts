import { text as textOf } from 'node:stream/consumers'
import type { EndpointTest, WireProtocol } from '../../../plugins/endpoints/contract.js'
import { askedAs, askedOf } from '../calls/asked-as.js'
import { asked, printResult } from '../terminal/asked.js'
import { connected } from '../daemon/connection.js'
import { SELF } from '../terminal/own-name.js'
import { counted, oneLine, plain, quoted } from '../terminal/text.js'
import { durationWords } from '../terminal/values.js'
import { CONNECTION, EXIT, misused, type GivenArguments, type Terminal, type Verb } from '../verb.js'
import { withStoreNote } from './access/store-note.js'
import { addLocal, fitting, switchLocal } from './local-model.js'

const PROTOCOLS: readonly string[] = ['openai', 'anthropic', 'ollama'] satisfies WireProtocol[]
const EXPECTED =
  'expected model list, model fit, model add NAME --protocol openai|anthropic|ollama --url URL [--key-stdin], '
  + 'model add NAME --local MODEL, or model test|start|stop|remove NAME'

/** Adds, lists, tests and removes the model servers of the sandbox. */
export const modelVerb: Verb = {
  name: 'model',
  usage:
    '[list | fit | add NAME --protocol PROTOCOL --url URL [--key-stdin] | add NAME --local MODEL | '
    + 'test|start|stop|remove NAME]',
  summary: 'use model servers of your own, and models that this machine runs',
  examples: [
    'model list',
    'model fit',
    'model add desk --protocol ollama --url http://127.0.0.1:11434',
    'model add lab --protocol openai --url https://models.example.org/v1 --key-stdin',
    'model test desk',
    'model add small --local custom --url https://models.example.org/small.gguf',
    'model stop small',
  ],
  notes: [
    'A server speaks one of three protocols: openai (chat completions), anthropic (messages) or ollama.',
    'With --key-stdin the key is read from standard input: other users of this machine could see an ' + 'argument.',
    'For add, --url is the address of the model server; SANDBOX_URL or --data name the daemon.',
    'With --local this machine runs the model with llama-server: one of model fit, or custom with the --url of a GGUF '
      + 'file.',
    'A turn runs on it with run --agent endpoint/NAME.',
  ],
  ids: { NAME: ['endpoints', 'list'] },
  flags: {
    ...CONNECTION,
    protocol: { value: 'PROTOCOL', choices: PROTOCOLS, help: 'add: the protocol of the server' },
    url: { value: 'URL', help: 'add: the address of the model server; otherwise: the daemon to use (SANDBOX_URL)' },
    local: { value: 'MODEL', help: 'add: a model that this machine runs: one of model fit, or custom' },
    sha256: { value: 'SHA256', help: 'add --local custom: the checksum of its file' },
    context: { value: 'TOKENS', help: 'add --local: the window; default: the largest usual one at full speed' },
    label: { value: 'LABEL', help: 'add: the name that people see; default: unchanged, or NAME' },
    'key-stdin': { help: 'add: read its key from standard input' },
    model: { value: 'MODEL', help: 'test: the model to ask; default: its first' },
  },
  most: 2,
  run: (terminal, given) => {
    const [what = 'list', name] = given.args
    if (what === 'list' && name === undefined) return listed(terminal, given)
    if (what === 'fit' && name === undefined) return fitting(terminal, given)
    if ((what === 'start' || what === 'stop') && name !== undefined)
      return switchLocal(terminal, given, name, what === 'start')
    if (what === 'add' && name !== undefined && given.text('local') !== undefined)
      return addLocal(terminal, given, name)
    if (what === 'add' && name !== undefined) return added(terminal, given, name)
    if (what === 'test' && name !== undefined) return tested(terminal, given, name)
    if (what === 'remove' && name !== undefined) {
      return asked(
        terminal,
        given,
        (client, options) => client.call('DELETE /endpoints/{id}', { id: name }, options),
        () => `removed ${plain(name)}`,
      )
    }
    return misused(`${EXPECTED}, found model ${given.args.join(' ')}`)
  },
}

const listed = (terminal: Terminal, given: GivenArguments): Promise<number> =>
  askedAs(terminal, given, ['endpoints', 'list'], (client, options) =>
    client.call('GET /endpoints', undefined, options),
  )

const added = async (terminal: Terminal, given: GivenArguments, name: string): Promise<number> => {
  const [protocol, baseUrl, label] = [given.text('protocol'), given.text('url'), given.text('label')]
  if (!baseUrl || protocol === undefined || !PROTOCOLS.includes(protocol)) misused(EXPECTED)
  if (given.on('key-stdin') && given.text('token-file') === '-')
    misused('standard input can hold the key or the control token, not both')
  const key = given.on('key-stdin') ? (await textOf(terminal.in)).trim() : undefined
  if (key === '') misused('expected the key on standard input, found nothing')
  const daemon: GivenArguments = { ...given, text: flag => (flag === 'url' ? undefined : given.text(flag)) }
  return askedOf(
    terminal,
    daemon,
    ['endpoints', 'POST /endpoints'],
    (client, options) => {
      const server = {
        ...{ id: name, kind: 'server' as const, protocol: protocol as WireProtocol, baseUrl: baseUrl! },
        ...(key !== undefined && { apiKey: key }),
        ...(label !== undefined && { label }),
      }
      const save = () => client.call('POST /endpoints', server, options)
      return key === undefined ? save() : withStoreNote(terminal, given, client, save)
    },
    ({ id, status, models, default: first }) => [
      `saved ${plain(id)}: ${status}, ${counted(models, 'model')}${first ? `, default ${oneLine(first)}` : ''}`,
      ...(status === 'ready'
        ? [`next: ${SELF} run "TEXT" --agent ${quoted(`endpoint/${id}`)}`]
        : [`next: ${SELF} model test ${quoted(id)}`]),
    ],
  )
}

const tested = (terminal: Terminal, given: GivenArguments, name: string): Promise<number> =>
  connected(terminal, given, async ({ client }) => {
    const model = given.text('model')
    const input = { id: name, ...(model !== undefined && { model }) }
    const found = await client.call('POST /endpoints/{id}/test', input, { signal: terminal.signal })
    await printResult(terminal, given, found, () => wordsOf(found))
    return found.ok ? EXIT.ok : EXIT.failed
  })

const wordsOf = ({
  ok,
  latencyMs,
  models,
  model,
  chat,
  streaming,
  tools,
  suggestion,
  detail,
}: EndpointTest): string[] => [
  `${ok ? 'works' : 'does not work'}: ${counted(models, 'model')}`
    + `${model === undefined ? '' : `, ${oneLine(model)} ${chat === 'ok' ? 'answers' : 'does not answer'}`}`
    + `${latencyMs === undefined ? '' : ` in ${durationWords(latencyMs)}`}`,
  ...(chat === 'ok' && !streaming ? ['it does not stream its answers'] : []),
  ...(tools === 'unsupported' ? ['it refuses tools, so it cannot drive a turn'] : []),
  ...(detail === undefined ? [] : [oneLine(detail)]),
  ...(suggestion
    ? [
        'what works: '
          + [
            ...(suggestion.protocol ? [`--protocol ${suggestion.protocol}`] : []),
            ...(suggestion.baseUrl ? [`--url ${quoted(suggestion.baseUrl)}`] : []),
          ].join(' '),
      ]
    : []),
]
