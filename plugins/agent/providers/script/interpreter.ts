import type { TurnIo, TurnRequest } from '../adapter.js'
import type { Frame } from '../../turn/frames/frames.js'
import { End, ScriptContext, MOVED, STOPPED, type ScriptFrames } from './context.js'
import type { ScriptCommand } from './verb.js'

/**
 * Runs a script in the place of the model in the tool loop: its frames, from the first command that is not finished.
 */
export async function* interpret(commands: readonly ScriptCommand[], request: TurnRequest, io: TurnIo): ScriptFrames {
  const script = new ScriptContext(commands, request, io)
  let end = new End()
  try {
    if (script.saved.mode !== request.permissionMode) io.mode(script.saved.mode)
    yield* commandsLeft(commands, script)
  } catch (error) {
    if (error === MOVED) return
    if (error instanceof End) end = error
    else if (error !== STOPPED && !io.signal.aborted) throw error
  }
  yield* script.once(usage(script))
  if (end.failure) yield* script.once({ kind: 'error', ...end.failure })
}

async function* commandsLeft(commands: readonly ScriptCommand[], script: ScriptContext): ScriptFrames {
  for (let command = commands[script.at]; command; command = commands[script.at]) {
    if (script.saved.done < (command.times ?? 1)) {
      await script.gap()
      script.hear(script.io.takeWords())
      yield* done(command, script)
    }
    await script.settle(command)
  }
}

async function* done({ name, verb, input }: ScriptCommand, script: ScriptContext): ScriptFrames {
  if (verb.native && script.request.harness !== 'native') {
    return yield* script.say(
      `${name} is not available here: it speaks as a model's server would, and this is a program of its own.`,
    )
  }
  const steps = verb.run(input, script)
  if (steps && Symbol.asyncIterator in steps) yield* steps
  else await steps
}

const usage = ({ saved: { usage, spoken }, request: { prompt } }: ScriptContext): Frame => ({
  kind: 'usage',
  costUsd: usage?.costUsd ?? 0,
  inputTokens: usage?.input ?? Math.ceil(prompt.length / 4),
  outputTokens: usage?.output ?? Math.ceil(spoken / 4),
  numTurns: 1,
})
