import { realpath } from 'node:fs/promises'
import { refuse, type Place } from '../../../sdk/index.js'
import { ownEnv } from '../../../sdk/node/programs/own-programs.js'
import { type Walled, walled } from '../../../sdk/node/wall/wall.js'
import { needModelProgram } from './model-program.js'

/** What the server of a model is started with. */
export interface ServerOrder {
  /** The name of the model in its list. */
  readonly name: string
  /** The file of its weights. */
  readonly weights: string
  readonly context: number
  readonly port: number
  readonly key: string
}

/** Where the weights are behind the wall. */
const WEIGHTS = '/weights/model.gguf'

/**
 * Switches as variables: a version of the program that does not know one ignores it, where it would end at an argument.
 * The page with what its slots work on has no use here and would show prompts to all who have the key.
 */
const SWITCHES = {
  LLAMA_ARG_ENDPOINT_SLOTS: '0',
  LLAMA_ARG_NO_ENDPOINT_SLOTS: '1',
  LLAMA_ARG_NO_WEBUI: '1',
  LLAMA_ARG_JINJA: '1',
}

/** The command that serves a model behind the wall: it sees the system, its own folder and its weights. */
export const modelServerCommand = async (
  place: Pick<Place, 'workspace' | 'data' | 'hidden' | 'grants' | 'models'>,
  { name, weights, context, port, key }: ServerOrder,
): Promise<Walled> => {
  const { program, folders } = await needModelProgram(place)
  const command = await walled(
    {
      workspace: await realpath(place.workspace),
      data: place.data,
      only: [],
      cwd: '/',
      hide: place.hidden,
      grants: { read: place.grants.read, write: [] },
      shown: [{ from: weights, to: WEIGHTS }],
      readOnly: folders,
      env: await ownEnv({ HOME: '/tmp', LLAMA_API_KEY: key, ...SWITCHES }),
    },
    program,
    [
      ...['--model', WEIGHTS, '--alias', name],
      ...['--host', '127.0.0.1', '--port', String(port)],
      ...['--ctx-size', String(context), '--parallel', '1', '--n-gpu-layers', '0'],
    ],
  )
  return command.enforced
    ? command
    : refuse('missing-program', 'a model server cannot be contained on this machine: install bubblewrap')
}
