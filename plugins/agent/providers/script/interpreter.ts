import type { TurnIo, TurnRequest } from '../adapter.js'
import type { Frame } from '../../turn/frames.js'
import { End, ScriptContext, MOVED, STOPPED, type ScriptFrames } from './context.js'
import type { ScriptCommand } from './verb.js'

/**
 * Runs a script in the place of the model in the tool loop: its frames, from the first command that is not finished.
 */
export async function* interpret(commands: readonly ScriptCommand[], request: TurnRequest, io: TurnIo): ScriptFrames {
  const hand = new ScriptContext(commands, request, io)
  let end = new End()
  try {
    if (hand.saved.mode !== request.permissionMode) io.mode(hand.saved.mode)
    yield* commandsLeft(commands, hand)
  } catch (error) {
    if (error === MOVED) return
    if (error instanceof End) end = error
    else if (error !== STOPPED && !io.signal.aborted) throw error
  }
  yield* hand.once(usage(hand))
  if (end.failure) yield* hand.once({ kind: 'error', ...end.failure })
}

async function* commandsLeft(commands: readonly ScriptCommand[], hand: ScriptContext): ScriptFrames {
  for (let command = commands[hand.at]; command; command = commands[hand.at]) {
    if (hand.saved.done < (command.times ?? 1)) {
      await hand.gap()
      hand.hear(hand.io.takeWords())
      yield* done(command, hand)
    }
    await hand.settle(command)
  }
}

async function* done({ name, verb, input }: ScriptCommand, hand: ScriptContext): ScriptFrames {
  if (verb.native && hand.request.harness !== 'native') {
    return yield* hand.say(
      `${name} is not available here: it speaks as a model's server would, and this is a program of its own.`,
    )
  }
  const steps = verb.run(input, hand)
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
