// Runs the backend of one extension in a process of its own. Started behind a wall, with the pipe to the daemon as file
// descriptor 3.
import { Socket } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { BackendAnswers } from './answers.js'
import { authorHost, type BackendIdentity } from './author-host.js'
import { encodeMessage, MessageDecoder } from './codec.js'
import type { ExtensionModule } from './host.js'
import { ExtensionLink, LinkError } from './link.js'
import { MOST_MESSAGE, type HostOperations, type LinkFailure, type LinkMessage } from './protocol.js'

const PIPE = 3

const pipe = new Socket({ fd: PIPE, readable: true, writable: true })
const answers = new BackendAnswers()
const decoder = new MessageDecoder(MOST_MESSAGE)

let corked = false
/** Messages of one turn of the event loop go out in one write. */
const send = (message: LinkMessage): void => {
  const bytes = encodeMessage(message, MOST_MESSAGE)
  if (!corked) {
    corked = true
    pipe.cork()
    setImmediate(() => {
      corked = false
      pipe.uncork()
    })
  }
  pipe.write(bytes)
}

const failure = (error: unknown): LinkFailure => {
  if (error instanceof LinkError)
    return {
      message: error.message,
      ...(error.code !== undefined && { code: error.code }),
      ...(error.entry !== undefined && { entry: error.entry }),
    }
  return { message: error instanceof Error ? `${error.name}: ${error.message}`.slice(0, 4000) : 'it failed' }
}

const activate = async (identity: BackendIdentity): Promise<object> => {
  const module = (await import(pathToFileURL(join(identity.dir, identity.server)).href)) as Partial<ExtensionModule>
  if (typeof module.activate !== 'function') throw new Error(`${identity.server} does not export activate(host)`)
  await module.activate(authorHost(identity, link, answers))
  return {}
}

const link: ExtensionLink<HostOperations> = new ExtensionLink<HostOperations>({
  send,
  failure,
  answer: async (op, input, signal) => {
    if (op === 'activate') return activate(input as BackendIdentity)
    const answer = await answers.answer(link, op, input, signal)
    // Ends by itself once the answer is written.
    if (op === 'stop') setImmediate(() => pipe.end(() => process.exit(0)))
    return answer
  },
})

pipe.on('data', (bytes: Buffer) => {
  for (const message of decoder.push(bytes)) link.receive(message as LinkMessage)
})
pipe.on('error', () => process.exit(1))
pipe.on('close', () => process.exit(0))
process.on('unhandledRejection', error => {
  console.error(error)
  process.exit(1)
})
