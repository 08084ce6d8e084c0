import { randomBytes } from 'node:crypto'
import type { Harness, PermissionMode, Started, TurnInput } from '../../../plugins/agent/contract.js'
import { Unreached } from '../../client.js'
import { foldersWithGit } from '../../node/repositories/folders-with-git.js'
import { Refusal } from '../../refusal.js'
import { ATTACH, attachmentsOf } from './attachments.js'
import type { Connection } from '../daemon/connection.js'
import { plain } from '../terminal/text.js'
import { type Flag, type GivenArguments, misused, type Terminal } from '../verb.js'
import { durationOf } from '../terminal/when.js'

const START_TRIES = 3
const CONVERSATION = /^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$/
const MODES: readonly string[] = ['default', 'acceptEdits', 'plan', 'bypassPermissions'] satisfies PermissionMode[]
const HARNESSES: readonly string[] = ['native', 'vendor-code'] satisfies Harness[]

const ROLES: readonly string[] = [
  'maintenance-chore',
  'documentation-run',
  'acceptance-run',
  'deployment-fix',
  'pipeline-fix',
] satisfies TurnInput['runRole'][]
const SWITCH: readonly string[] = ['on', 'off']

/** The options of a turn. */
export const TURN: { readonly [name: string]: Flag } = {
  isolated: { help: 'work in a private copy' },
  shared: { help: 'work in the workspace itself' },
  agent: { value: 'PROVIDER', help: "the provider; default: the conversation's, else the default one" },
  model: { value: 'MODEL', help: 'the model' },
  effort: {
    value: 'LEVEL',
    help: "how much the model thinks and does, as its row in models lists; default: the model's",
  },
  thinking: { value: 'SWITCH', choices: SWITCH, help: 'on or off: the model thinks before it answers' },
  fast: { value: 'SWITCH', choices: SWITCH, help: 'on or off: faster answers for more money' },
  harness: {
    value: 'HARNESS',
    choices: HARNESSES,
    help: "what runs the agent: native, or vendor-code for the provider's own program",
  },
  mode: { value: 'MODE', choices: MODES, help: 'permission mode: default, acceptEdits, plan or bypassPermissions' },
  persona: {
    value: 'ID',
    help: "the persona that the conversation wears from this turn on; default: the conversation's",
  },
  role: {
    value: 'ROLE',
    choices: ROLES,
    help: `what the turn is for, which picks its model by the settings: ${ROLES.join(', ')}`,
  },
  title: { value: 'TITLE', help: 'the title of a new conversation' },
  ...ATTACH,
}

/** The option for each field of the call, to translate the daemon's refusals. */
const FLAG_OF: { readonly [field: string]: string } = {
  attachments: '--attach',
  permissionMode: '--mode',
  conversationId: '--conversation',
  agent: '--agent',
  harness: '--harness',
  model: '--model',
  effort: '--effort',
  thinking: '--thinking',
  fast: '--fast',
  runRole: '--role',
  title: '--title',
  actsAs: '--persona',
  isolated: '--isolated',
}

/** Translates the field in a refusal to the option of the command line. */
export const inFlags = (error: unknown): unknown => {
  if (!(error instanceof Refusal) || error instanceof Unreached) return error
  if (error.message.startsWith('isolated: ')) {
    // Without a flag a private copy is the choice of this program: the person is told what to do, not what was sent.
    const message = error.message.slice('isolated: '.length).replace('leave isolated out', 'give --shared')
    return new Refusal(error.reason, message, error.detail)
  }
  const message = error.message.replace(/^(\w+)(?=:)/, field => FLAG_OF[field] ?? field)
  return message === error.message ? error : new Refusal(error.reason, message, error.detail)
}

/** Checks the options of a turn before the daemon is contacted. */
export const checkTurn = (given: GivenArguments): void => {
  if (given.on('isolated') && given.on('shared')) misused('expected --isolated or --shared, found both')
  oneOf('--mode', MODES, given.text('mode'))
  oneOf('--harness', HARNESSES, given.text('harness'))
  oneOf('--role', ROLES, given.text('role'))
  oneOf('--thinking', SWITCH, given.text('thinking'))
  oneOf('--fast', SWITCH, given.text('fast'))
  const patience = given.text('timeout')
  if (patience !== undefined) durationOf(patience, '--timeout')
}

const oneOf = (flag: string, choices: readonly string[], found: string | undefined): void => {
  if (found !== undefined && !choices.includes(found))
    misused(`${flag}: expected ${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}, found ${plain(found)}`)
}

/** The id for a new conversation: the value of an option, which is validated, or a new one. */
export const newConversation = (given: GivenArguments, flag: string): string => {
  const id = given.text(flag)
  if (id !== undefined && !CONVERSATION.test(id)) {
    misused(`--${flag}: expected at most 64 letters, digits, _ and -, the first a letter or digit, found ${plain(id)}`)
  }
  return id ?? mintConversation()
}

/** Builds the input of a turn from the command line. */
export const turnOf = async (
  terminal: Terminal,
  connection: Connection,
  given: GivenArguments,
  prompt: string,
  conversationId: string,
): Promise<TurnInput> => {
  const optional = {
    agent: given.text('agent'),
    model: given.text('model'),
    harness: given.text('harness') as Harness | undefined,
    title: given.text('title'),
    actsAs: given.text('persona'),
    permissionMode: given.text('mode') as PermissionMode | undefined,
    runRole: given.text('role') as TurnInput['runRole'],
    effort: given.text('effort'),
    thinking: switched(given.text('thinking')),
    fast: switched(given.text('fast')),
  }
  const attachments = await attachmentsOf(terminal, connection, given.all('attach'))
  return {
    prompt,
    conversationId,
    ...((await isolated(given, connection)) && { isolated: true }),
    ...(attachments.length && { attachments }),
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)),
  }
}

const switched = (found: string | undefined): boolean | undefined => (found === undefined ? undefined : found === 'on')

const isolated = async (given: GivenArguments, { daemon }: Connection): Promise<boolean> => {
  if (given.on('isolated') || given.on('shared')) return given.on('isolated')
  return daemon === undefined || !(await foldersWithGit(daemon.workspace).next()).done
}

/** Starts a turn; retries without an answer with the same message id, so that it starts only once. */
export const startTurn = async ({ client }: Connection, input: TurnInput): Promise<Started> => {
  const message: TurnInput = { messageId: `m-${randomBytes(8).toString('hex')}`, ...input }
  for (let tries = 1; ; tries++) {
    try {
      return await client.call('POST /agent', message)
    } catch (error) {
      if (tries === START_TRIES || !(error instanceof Unreached)) throw inFlags(error)
    }
  }
}

/** A new conversation id. */
export const mintConversation = (): string => `c-${randomBytes(5).toString('hex')}`
