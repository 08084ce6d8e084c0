import type { AnyMessage, InitializeResponse } from '@agentclientprotocol/sdk'
import { once } from 'node:events'
import { watchLife } from '../../../sdk/node/programs/life.js'
import { linesWithin, NotTheProtocol, PipedProcess, quotedLine } from '../../../sdk/node/programs/piped-process.js'
import type { Walled } from '../../../sdk/node/wall/wall.js'
import { refuse, ignored } from '../../../sdk/index.js'

/** What a program may write before it has answered. */
const MOST_BYTES = 1024 * 1024
/** When it is said what is waited for, and how long the program may show no sign of life, in ms. */
const TIMES = { slowMs: 10_000, quietMs: 60_000 }

/** What an agent program says of itself. */
export interface AgentGreeting {
  readonly name?: string
  readonly version?: string
  readonly loadsSessions: boolean
  readonly takesImages: boolean
  /** The ways to sign in that it knows. */
  readonly signIns: readonly string[]
}

/**
 * Starts an agent program, agrees with it on the protocol, and ends it with everything it started.
 *
 * It may take as long as the program shows life; `waits` is called with how it is while it takes long.
 *
 * @throws A refusal `dependency` that says what it did instead, and what to do.
 */
export const greet = async (
  command: Walled,
  {
    program,
    signal,
    waits,
    times = TIMES,
  }: { program: string; signal: AbortSignal; waits?: (how: string) => void; times?: typeof TIMES },
): Promise<AgentGreeting> => {
  signal.throwIfAborted()
  const process = new PipedProcess(command, 'own')
  const quiet = new AbortController()
  let silent = ''
  const seen = watchLife(process, {
    ...times,
    waits,
    quiet: how => {
      silent = `has not answered, and ${how}`
      quiet.abort()
    },
  })
  const over = AbortSignal.any([signal, quiet.signal])
  try {
    const answer = await initialized(process, over)
    const { protocolVersion, agentInfo, agentCapabilities, authMethods } = answer
    const { PROTOCOL_VERSION } = await import('@agentclientprotocol/sdk')
    if (protocolVersion !== PROTOCOL_VERSION)
      throw new NotTheProtocol(
        `speaks version ${protocolVersion} of the Agent Client Protocol, not ${PROTOCOL_VERSION}: `
          + 'install a version of the program that speaks it',
      )
    return {
      ...(agentInfo?.name && { name: agentInfo.title ?? agentInfo.name }),
      ...(agentInfo?.version && { version: agentInfo.version }),
      loadsSessions: agentCapabilities?.loadSession === true,
      takesImages: agentCapabilities?.promptCapabilities?.image === true,
      signIns: (authMethods ?? []).map(({ name }) => name),
    }
  } catch (error) {
    signal.throwIfAborted()
    const how = silent || (await reasonOf(error, process))
    return refuse('dependency', sentenceOf(program, how, process.errors), { cause: error })
  } finally {
    seen()
    await process.end('at once')
  }
}

const initialized = async (process: PipedProcess, over: AbortSignal): Promise<InitializeResponse> => {
  const { client, methods, PROTOCOL_VERSION } = await import('@agentclientprotocol/sdk')
  const lost = Promise.withResolvers<never>()
  lost.promise.catch(ignored('the caller that awaits it gets the failure'))
  const fail = () => lost.reject(over.reason)
  over.addEventListener('abort', fail, { once: true })
  void process.ended.then(how => lost.reject(new Error(how)))
  const connection = client({ name: 'sandbox' }).connect({
    readable: messagesOf(process, error => lost.reject(error)),
    writable: new WritableStream<AnyMessage>({
      write: async message => {
        if (!process.input.destroyed && !process.input.write(`${JSON.stringify(message)}\n`))
          await Promise.race([once(process.input, 'drain'), once(process.input, 'close')])
      },
    }),
  })
  const asked = connection.agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    // What a turn gives it later: it may show other ways to sign in to a client that can do less.
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
    clientInfo: { name: 'sandbox', version: '1' },
  })
  // A broken connection is reported by the loss of the program, which has the reason.
  const answer = asked.catch(error => (connection.signal.aborted ? lost.promise : Promise.reject(error)))
  try {
    return await Promise.race([answer, lost.promise])
  } finally {
    over.removeEventListener('abort', fail)
    connection.close()
  }
}

/** The messages of a program, as long as they are ones. */
const messagesOf = (process: PipedProcess, failed: (error: Error) => void): ReadableStream<AnyMessage> => {
  const lines = linesWithin(process.output as AsyncIterable<Buffer>, MOST_BYTES)
  let bytes = 0
  return new ReadableStream<AnyMessage>(
    {
      pull: async controller => {
        try {
          for (;;) {
            const { value: line, done } = await lines.next()
            if (done) return controller.close()
            bytes += line.length
            if (bytes > MOST_BYTES) throw new NotTheProtocol(`wrote more than ${MOST_BYTES} bytes before it answered`)
            if (line.trim() !== '') return controller.enqueue(messageOf(line))
          }
        } catch (error) {
          failed(error as Error)
          controller.error(error)
        }
      },
      cancel: () => void lines.return().catch(ignored('the program is not read any more')),
    },
    { highWaterMark: 0 },
  )
}

const messageOf = (line: string): AnyMessage => {
  try {
    const value: unknown = JSON.parse(line)
    if (typeof value === 'object' && value !== null && !Array.isArray(value) && 'jsonrpc' in value)
      return value as AnyMessage
  } catch {
    // The line itself is reported below, which is more useful than the parser's message.
  }
  throw new NotTheProtocol(`wrote a line that is no message of the Agent Client Protocol: ${quotedLine(line)}`)
}

/** What happened, as the rest of a sentence about the program. */
const reasonOf = async (error: unknown, process: PipedProcess): Promise<string> => {
  if (error instanceof NotTheProtocol) return error.message
  // Its end says more than the connection that broke by it.
  const ended = await Promise.race([
    process.ended,
    new Promise<undefined>(resolve => setTimeout(resolve, 500, undefined)),
  ])
  return ended ?? `refused the handshake (${error instanceof Error ? error.message : String(error)})`
}

const MISSING = /execvp [^\n]*: No such file or directory|(?:exec|cannot run)[^\n]*(?:not found|No such file)/

const sentenceOf = (program: string, how: string, errors: string): string => {
  if (MISSING.test(errors))
    return (
      `${program} is not there behind the wall: install it where the whole system has it, or show its folder with `
      + '`wall.read` of the deployment'
    )
  const advice = /^ended|^was ended|^could not/.test(how)
    ? 'run the command in a terminal to see what it needs'
    : 'expected an agent program that speaks the Agent Client Protocol over standard input and output; many need '
      + 'an argument for that, such as acp'
  return `${program} ${how}${errors ? `: ${errors.slice(-400)}` : ''}; ${advice}`
}
