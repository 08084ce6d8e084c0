import type { Contract, Host } from '../../sdk/index.js'
import { placesOfConversation } from '../../sdk/node/access/conversation-reach.js'
import { WorkspacePaths } from '../../sdk/node/files/workspace-paths.js'
import { loopsCalls } from './calls.js'
import { loopsContract, type LoopsCalls } from './contract.js'
import { DESIGNS_FILE, loopDesigns } from './designs.js'
import { LoopFiles } from './documents.js'
import { examples } from './examples.js'
import { Loops } from './loops.js'
import { Rounds } from './rounds.js'

export const contract: Contract<LoopsCalls> = { ...loopsContract, examples }

/** Repeats conversations towards a goal. */
export const activate = async (host: Host): Promise<void> => {
  const { workspace } = host.place
  const failed = (what: string) => (error: unknown) =>
    void (host.signal.aborted || host.log.error(`${what} failed`, { error: String(error) }))
  const files = new LoopFiles(workspace)
  const rounds = new Rounds(host, files)
  const designs = loopDesigns(workspace)
  const publish = async (key: string, isConversation: boolean) => {
    const state = isConversation ? await rounds.state(key) : undefined
    const within = state && (await placesOfConversation(new WorkspacePaths(workspace), state.conversation))
    await host.call('kernel.events.publish', { domain: 'loops', key, ...(within && { within }) })
  }
  const published = (key: string, isConversation = false) =>
    void publish(key, isConversation).catch(failed('publishing a change'))
  const loops = new Loops({ host, files, rounds, changed: id => published(id, true) })
  // Before the turns of the last run end.
  await loops.load()
  host.on('turn.settled', ({ conversationId, run, ...end }) => loops.settled(conversationId, run, end))
  host.on('need.settled', ({ conversationId }) => loops.answered(conversationId))
  host.on(
    'conversation.stopped',
    ({ conversationId }) => void loops.stopped(conversationId).catch(failed('stopping a loop')),
  )
  host.on(
    'conversation.archived',
    ({ conversationId }) => void loops.stopped(conversationId).catch(failed('stopping a loop')),
  )
  host.on(
    'conversation.gone',
    ({ conversationId, how }) =>
      void loops.gone(conversationId, how === 'purged').catch(failed('removing the loop of a conversation')),
  )
  host.boot('Loops', () => designs.sweep().catch(failed('removing leftover files')))
  // Turns of the last run have been recovered by then.
  host.on('daemon.ready', () => void loops.recover().catch(failed('going on with loops')))

  host.contribute('system.manifestProblems', async () => {
    const { problems, wrong } = await designs.read()
    return [
      {
        path: DESIGNS_FILE,
        problems: [
          ...(wrong === undefined ? [] : [{ kind: 'unreadable' as const, detail: wrong }]),
          ...problems.map(({ id, message }) => ({ kind: 'invalidEntry' as const, detail: `${id}: ${message}` })),
        ],
      },
    ]
  })
  host.contribute('personas.pointers', async () =>
    loops.all.flatMap(({ conversationId: id, goal, state, actsAs }) =>
      actsAs === undefined || state !== 'running'
        ? []
        : [{ kind: 'loop' as const, id, label: goal.slice(0, 80), persona: actsAs }],
    ),
  )
  await host.serve(loopsContract, loopsCalls({ host, loops, rounds, designs, publish: published }))
}
