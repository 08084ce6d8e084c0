import type { Handlers, Host } from '../../../sdk/index.js'
import { meOf } from '../request.js'
import type { StreamCalls } from './contract.js'
import { EventStream } from './events.js'

/** Serves the event stream of the sandbox and its presence roster. */
export const streamCalls = async (host: Host): Promise<Handlers<StreamCalls>> => {
  const events = new EventStream(host)
  await events.open()
  return {
    'members.present': () => ({ present: events.presence.users.map(({ email, idle }) => ({ email, idle })) }),
    'stream.board': (_, { signal }) => events.attend(signal),
    'GET /events': (input, context) => events.watch(input, context, meOf(context.caller)),
    'POST /system/presence': async (input, { caller }) => {
      await events.presence.say(caller, input)
      return { ok: true }
    },
  }
}
