import { randomBytes } from 'node:crypto'
import type { Contract, Host } from '../../sdk/index.js'
import { repeat } from '../../sdk/node/concurrency/repeat.js'
import { placesOfConversation } from '../../sdk/node/access/conversation-reach.js'
import { WorkspacePaths } from '../../sdk/node/files/workspace-paths.js'
import { cardsOf, needsCalls, stateOf } from './calls.js'
import { needsContract, type NeedsCalls } from './contract.js'
import { examples } from './examples.js'
import { Needs, type Say } from './needs.js'
import { secretKeysOf, type StoredNeed } from './stored-need.js'

export const contract: Contract<NeedsCalls> = { ...needsContract, examples }

const SWEEP_MS = 24 * 3_600_000
const MARKS = 'marks.json'

/** Keeps what agents wait for, and lets their conversations go on once it was given. */
export const activate = async (host: Host): Promise<void> => {
  const failed = (what: string) => (error: unknown) =>
    void (host.signal.aborted || host.log.error(`${what} failed`, { error: String(error) }))
  const say: Say = (message, context) =>
    host.call('agent.start', { ...message, ...(!context && { unattended: true }) }, context ? { as: context } : {})
  const publish = async ({ id, conversationId }: StoredNeed) => {
    const state = await stateOf(host, conversationId)
    const within = state && (await placesOfConversation(new WorkspacePaths(host.place.workspace), state.conversation))
    await host.call('kernel.events.publish', { domain: 'needs', key: id, ...(within && { within }) })
  }
  const needs = new Needs(host, say, need => void publish(need).catch(failed('publishing a need')))
  await needs.load()

  host.on(
    'conversation.gone',
    ({ conversationId }) => void needs.withdrawAll(conversationId).catch(failed('withdrawing needs')),
  )
  host.on('secret.set', ({ key }) => {
    const settle = async () => {
      const { names } = await host.call('secrets.names')
      await needs.arrived(`secret:${key}`, need => {
        const keys = secretKeysOf(need)
        return keys !== undefined && keys.includes(key) && keys.every(each => names.includes(each))
      })
    }
    void settle().catch(failed('settling needs of a secret'))
  })
  host.on('capability.connected', ({ id }) => {
    const settle = async () => {
      const cards = (await cardsOf(host)).filter(({ instances }) => instances.includes(id)).map(card => card.id)
      await needs.arrived(`capability:${id}`, need => need.kind === 'capability' && cards.includes(need.card ?? ''))
    }
    void settle().catch(failed('settling needs of a connection'))
  })
  // Turns of the last run have been recovered by then.
  host.on('daemon.ready', () => {
    const begin = async () => {
      await needs.expire()
      await needs.sendDue()
    }
    void begin().catch(failed('going on with what was given'))
  })
  repeat(host, SWEEP_MS, 'removing old needs', () => needs.sweep())
  host.stopping(async () => {
    needs.stop()
  })

  let marks = await host.files.read<{ key: string }>(MARKS)
  if (!marks) await host.files.write(MARKS, (marks = { key: randomBytes(32).toString('base64url') }))
  await host.serve(needsContract, needsCalls(host, needs, marks.key))
}
