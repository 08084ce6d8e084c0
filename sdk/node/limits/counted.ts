import { ignored } from '../../ignored.js'
import { refuse } from '../../refusal.js'
import type { Host } from '../../host.js'
import { run, type RunOptions, type RunResult } from '../programs/run.js'
import type { Walled } from '../wall/wall.js'
import type { ProgramEnd, ProgramLimits } from './group.js'

const LAST_WORDS = 4000
const ALONE = 'without the group that counts them no turn runs that has limits'

/** A command for a program of a conversation. */
interface CommandOfConversation {
  readonly conversationId: string
  readonly command: Walled
}

type CountHost = Pick<Host, 'call'>

/** Counts a program that another group starts among those of a conversation: its limits hold for all together. */
export const countedFor = (host: CountHost, conversationId: string): ProgramLimits => {
  let started: number | undefined
  return {
    begun: pid => {
      started = pid
      void begin(host, conversationId, pid)
    },
    ended: end => started !== undefined && void finish(host, started, end),
  }
}

const begin = (host: CountHost, conversationId: string, pid: number): Promise<unknown> =>
  host.call('checkouts.programBegun', { conversationId, pid }).catch(ignored(ALONE))

/** Answers the sentence of the limit that the conversation went over. */
const finish = async (host: CountHost, pid: number, { code, output }: ProgramEnd): Promise<string | undefined> => {
  const end = { pid, code, output: output.slice(-LAST_WORDS).toWellFormed() }
  return (await host.call('checkouts.programEnded', end).catch(ignored(ALONE)))?.exceeded
}

/**
 * Runs a command of a conversation to its end, counted among its programs.
 *
 * @throws A refusal with the sentence of the limit that it went over.
 */
export const runCounted = async (
  host: Pick<Host, 'call'>,
  { conversationId, command }: CommandOfConversation,
  options: Omit<RunOptions, 'cwd' | 'env' | 'walled' | 'onStart'>,
): Promise<RunResult> => {
  const { program, args, env, cwd, enforced } = command
  let started: number | undefined
  const onStart = (pid: number) => {
    started = pid
    void begin(host, conversationId, pid)
  }
  const result = await run(program, args, { ...options, env, cwd, walled: enforced, onStart })
  const output = result.stdout.subarray(-LAST_WORDS).toString() + result.stderr
  const exceeded = started === undefined ? undefined : await finish(host, started, { code: result.code, output })
  return exceeded === undefined ? result : refuse('too-large', exceeded)
}
