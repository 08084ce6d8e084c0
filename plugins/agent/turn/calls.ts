import { refuse } from '../../../sdk/index.js'
import type { Handlers, Host } from '../../../sdk/index.js'
import { assertReaches, senderOf } from '../conversations/access.js'
import { assertVisibleIn } from '../conversations/access-view.js'
import { ok } from '../ok.js'
import { attach, type AttachDeps } from './frames/attach.js'
import type { ConversationProcesses } from '../processes/conversation-processes.js'
import type { TurnCalls } from './contract.js'
import type { CountedPrograms } from './environment/counted-programs.js'
import type { LocalTurnEnvironment } from './environment/local-environment.js'
import type { PlannedResumes } from './recovery/planned-resumes.js'
import { spoken } from './spoken.js'
import { steer, type SteerDeps } from './steer.js'
import { switchAccount } from './switch-account.js'

/** The dependencies of the calls of the running turn. */
export interface TurnCallsDeps extends AttachDeps, SteerDeps {
  readonly host: Pick<Host, 'call' | 'emit'>
  readonly resumes: PlannedResumes
  readonly environment: Pick<LocalTurnEnvironment, 'walled' | 'treeOf'>
  readonly counted: CountedPrograms
  readonly processes: Pick<ConversationProcesses, 'running' | 'end'>
}

/** Serves the running turn. */
export const turnCalls = (deps: TurnCallsDeps): Handlers<TurnCalls> => {
  const { host, processes, resumes } = deps
  const see = assertVisibleIn(deps.conversations, deps.look)
  const running = (conversationId: string) =>
    deps.engine.live(conversationId) ?? refuse('conflict', `expected a running turn of ${conversationId}, found none`)
  return {
    'POST /agent/attach': (input, { caller, signal }) => attach(deps, input, caller, signal),
    'POST /agent/steer': async (input, context) => ok(steer(deps, input, await senderOf(host, context))),
    'POST /agent/stop': async ({ conversationId, background = false }, { caller }) => {
      const conversation = await see(conversationId, caller)
      assertReaches(caller, conversation)
      const { id } = conversation
      const before = processes.running(id)
      host.emit('conversation.stopped', { conversationId: id })
      const stopped = await resumes.stop(id)
      if (background) await processes.end(id, 'when its conversation was stopped')
      const after = processes.running(id)
      return { ok: true, stopped, ended: before.filter(one => !after.includes(one)).length, running: after.length }
    },
    'POST /agent/switch-account': async (input, { caller }) => {
      await see(input.conversationId, caller)
      return switchAccount(deps, input)
    },
    'agent.tree': ({ conversationId }) => {
      const { root, folders } = deps.environment.treeOf(running(conversationId))
      return { root, ...(folders && { folders: [...folders] }) }
    },
    'agent.walled': async ({ conversationId, ...program }) => {
      const turn = running(conversationId)
      const { program: path, args, env, cwd, enforced } = await deps.environment.walled(turn, program)
      return { program: path, args, env: { ...env }, cwd, enforced }
    },
    'checkouts.programBegun': ({ conversationId, pid }) => {
      deps.counted.begun(conversationId, pid)
      return { ok: true }
    },
    'checkouts.programEnded': ({ pid, ...end }) => {
      const exceeded = deps.counted.ended(pid, end)
      return exceeded === undefined ? {} : { exceeded }
    },
    'agent.words': (input, { signal }) => spoken(deps, input, signal),
  }
}
