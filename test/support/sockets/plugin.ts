import { refuse, type Handlers, type Host, type SocketContext } from '../../../sdk/index.js'
import {
  echo,
  type DropFrame,
  type Echo,
  type EndFrame,
  type HeardFrame,
  type PourFrame,
  type SayFrame,
} from './contract.js'

export const contract = echo

let drops = 0
let open = 0

async function* answers(
  { frames, caller }: SocketContext<SayFrame | PourFrame | EndFrame>,
  times = 1,
): AsyncGenerator<HeardFrame | DropFrame> {
  open += 1
  try {
    for await (const frame of frames) {
      if (frame.type === 'say')
        for (let n = 0; n < times; n++) yield { type: 'heard', text: frame.text, by: caller.actor }
      if (frame.type === 'pour') {
        const text = 'x'.repeat(frame.bytes)
        for (let at = 0; at < frame.frames; at++) {
          drops += 1
          yield { type: 'drop', at, text }
        }
      }
      if (frame.type !== 'end') continue
      if (frame.how === 'forbidden') refuse('forbidden', 'you may not stay')
      if (frame.how === 'bug') throw new Error('a secret detail')
      return
    }
  } finally {
    open -= 1
  }
}

/** Answers frames with frames. */
export const activate = async (host: Host): Promise<void> => {
  const handlers: Handlers<Echo> = {
    'GET /echo/by-ticket': ({ session }, context) =>
      session === 'gone' ? refuse('not-found', 'no session is named gone') : answers(context),
    'GET /echo/{room}': async ({ room, times }, context) =>
      room === 'gone' ? refuse('not-found', 'no room is named gone') : answers(context, times),
    'GET /echo-count': () => ({ drops, open }),
  }
  await host.serve(echo, handlers)
}
