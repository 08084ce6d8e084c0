import { text as textOf } from 'node:stream/consumers'
import type { ApplyFrame } from '../../../plugins/capabilities/contract.js'
import { wordsAs } from '../calls/asked-as.js'
import { assertDone, type FailedAnswer, failedOf, failuresOf } from '../calls/failures.js'
import { asked } from '../terminal/asked.js'
import { connected } from '../daemon/connection.js'
import { SELF } from '../terminal/own-name.js'
import { jsonLine, oneLine, plain, quoted } from '../terminal/text.js'
import { CONNECTION, EXIT, misused, type GivenArguments, type Terminal, type Verb } from '../verb.js'
import { withStoreNote } from './access/store-note.js'
import { write } from '../terminal/write.js'

const EXPECTED = 'expected agent list, agent add NAME --command "PROGRAM ARGS" or agent remove NAME'

/** Connects, lists and disconnects agent programs. */
export const agentVerb: Verb = {
  name: 'agent',
  group: 'agent',
  usage: '[list | add NAME --command COMMAND | remove NAME]',
  summary: 'use agent programs of your own',
  examples: [
    'agent list',
    'agent add opencode --command "opencode acp"',
    'agent add gemini --command "gemini --acp" --env-stdin',
  ],
  notes: [
    'An agent program speaks the Agent Client Protocol on its standard input and output. It runs behind the wall, '
      + 'with a home folder of its own.',
    'With --env-stdin its variables are read from standard input, NAME=value, one a line; they are kept as secrets.',
    'A turn runs on it with run --agent agent/NAME.',
  ],
  flags: {
    ...CONNECTION,
    command: { value: 'COMMAND', help: 'add: the program with its arguments' },
    label: { value: 'LABEL', help: 'add: the name that people see' },
    'login-command': { value: 'COMMAND', help: 'add: what a person types to sign in' },
    'env-stdin': { help: 'add: read its variables from standard input' },
  },
  most: 2,
  run: (terminal, given) => {
    const [what = 'list', name] = given.args
    if (what === 'list' && name === undefined) return listed(terminal, given)
    if (what === 'add' && name !== undefined) return added(terminal, given, name)
    if (what === 'remove' && name !== undefined) {
      return asked(
        terminal,
        given,
        (client, options) => client.call('DELETE /capabilities/{id}', { id: name }, options),
        () => `removed ${plain(name)}`,
      )
    }
    return misused(`${EXPECTED}, found agent ${given.args.join(' ')}`)
  },
}

const listed = async (terminal: Terminal, given: GivenArguments): Promise<number> => {
  const words = await wordsAs(terminal, ['capabilities', 'list'], {
    none: 'no agent programs; next: {sandbox} agent add NAME --command "PROGRAM ARGS"',
  })
  return asked(
    terminal,
    given,
    async (client, options) => {
      const { capabilities } = await client.call('GET /capabilities', undefined, options)
      return { agents: capabilities.filter(({ kind }) => kind === 'agent') }
    },
    ({ agents }, width) => words({ capabilities: agents }, width),
  )
}

const added = async (terminal: Terminal, given: GivenArguments, name: string): Promise<number> => {
  const [command, label, login] = [given.text('command'), given.text('label'), given.text('login-command')]
  if (!command) misused(EXPECTED)
  if (given.on('env-stdin') && given.text('token-file') === '-')
    misused('standard input can hold the variables or the control token, not both')
  const env = given.on('env-stdin') ? await textOf(terminal.in) : undefined
  const failures = await failuresOf(terminal, ['capabilities', 'POST /capabilities'])
  return connected(terminal, given, async ({ client }) => {
    let failed: FailedAnswer | undefined
    const config = {
      command: command!,
      ...(label !== undefined && { name: label }),
      ...(login !== undefined && { loginCommand: login }),
      ...(env !== undefined && { env }),
    }
    const connect = async () => {
      const asked = { id: name, kind: 'agent', config } as const
      const frames = await client.call('POST /capabilities', asked, { signal: terminal.signal })
      for await (const frame of frames) {
        await write(terminal, given.on('json') ? jsonLine(frame) : `${wordsOf(frame, name)}\n`)
        failed = failedOf(frame, failures, SELF) ?? failed
      }
    }
    await (env === undefined ? connect() : withStoreNote(terminal, given, client, connect))
    assertDone(failed)
    return EXIT.ok
  })
}

const wordsOf = (frame: ApplyFrame, name: string): string => {
  switch (frame.kind) {
    case 'log':
      return oneLine(frame.message)
    case 'status':
      return `${frame.status.state}${frame.status.detail === undefined ? '' : `: ${oneLine(frame.status.detail)}`}`
    case 'result':
      return `connected ${plain(name)}; next: ${SELF} run "TEXT" --agent ${quoted(`agent/${name}`)}`
  }
}
