import type { Caller, Handlers, Host, Identified, Context } from '../../sdk/index.js'
import { accessViewFor } from '../../sdk/node/access/asked-reach.js'
import { CONFIG_NAME, INTENT } from '../../sdk/node/deploy/entries.js'
import type { Applies } from './applies.js'
import type { OwnProgram } from './commands.js'
import type { ApplyRun, CliCalls, CliLine } from './contract.js'
import { withHeartbeats } from './jobs/line-file.js'
import type { CliRuns } from './runs.js'

const OK = { ok: true } as const

/** What the calls work with. */
export interface CliParts {
  readonly program: Pick<OwnProgram, 'commands'>
  readonly applies: Applies
  readonly runs: CliRuns
}

/** The handlers of the group's calls. */
export const cliCalls = (
  host: Pick<Host, 'call' | 'serves' | 'place'>,
  { program, applies, runs }: CliParts,
): Handlers<CliCalls> => {
  /** Whether a caller's areas hold the configuration, whose names an apply prints. */
  const sees = async (caller: Caller): Promise<boolean> =>
    (await accessViewFor(host, caller)).sees(`${INTENT}/${CONFIG_NAME}`)
  const applyFor = async (caller: Caller): Promise<ApplyRun> =>
    (await sees(caller)) ? applies.state() : { state: 'idle' }

  async function* events({
    caller,
    http,
    signal,
  }: Context): AsyncGenerator<CliLine | Identified<CliLine>, { apply: ApplyRun }> {
    const last = /^\d{1,9}$/.test(http?.lastEventId ?? '') ? Number(http!.lastEventId) : 0
    if (await sees(caller)) {
      let number = 0
      const numbered = async function* () {
        for await (const each of applies.follow(last, signal)) {
          number = each?.number ?? number
          yield each?.line
        }
      }
      for await (const line of withHeartbeats(numbered()))
        yield line.kind === 'heartbeat' ? line : { 'event-id': String(number), event: line }
    }
    return { apply: await applyFor(caller) }
  }

  return {
    'GET /cli': async (_, { caller }) => ({
      program: 'sandbox',
      ...(await program.commands.facts()),
      running: runs.running,
      apply: await applyFor(caller),
    }),
    'POST /cli': ({ args }, context) => runs.run(args, context),
    'POST /cli/apply': async ({ expect }, context) => {
      await applies.start(context, expect)
      return OK
    },
    'GET /cli/apply/events': (_, context) => events(context),
    'cli.apply': async (_, context) => {
      await applies.start(context)
      return OK
    },
    async *'cli.follow'(_, { signal }) {
      for await (const each of applies.follow(0, signal)) if (each) yield each.line
      yield { kind: 'apply', apply: await applies.state() }
    },
  }
}
