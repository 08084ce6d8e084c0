import type { Contract, Host } from '../../sdk/index.js'
import { recordingLimits } from '../../sdk/node/record/limited.js'
import { automationCalls } from './calls.js'
import { automations, type AutomationsCalls } from './contract.js'
import { AUTOMATIONS_FILE } from './definitions/definitions.js'
import { examples } from './examples.js'
import { automationParts } from './parts.js'
import { isWebchat, wornBy } from './webchat/strangers.js'

export const contract: Contract<AutomationsCalls> = { ...automations, examples }

/** What strangers call. */
const OPEN = [
  'POST /automations/{id}/fire',
  'GET /webchat/{id}/config',
  'GET /webchat/{id}/challenge',
  'POST /webchat/{id}/message',
  'GET /webchat/{id}/stream',
] as const

/** Serves work that starts by itself. */
export const activate = async (host: Host): Promise<void> => {
  const parts = automationParts(host)
  const { definitions, fires, held, scheduler, releases, events, visits, sites } = parts
  const failed = (what: string) => (error: unknown) =>
    void (host.signal.aborted || host.log.error(`${what} failed`, { error: String(error) }))
  // Before the turns of the last run end.
  const left = await parts.load()
  host.on('turn.settled', ({ run, ...end }) => {
    fires.settled(run, end)
    void releases.turnEnded().catch(failed('running held wakes'))
  })
  host.on('card.raised', ({ run }) => fires.parked(run))
  host.boot('Automations', () => definitions.sweep().catch(failed('removing leftover files')))
  // Turns of the last run have been recovered by then.
  host.on('daemon.ready', () => {
    const begin = async () => {
      for (const fire of left) await fires.recover(fire)
      await visits.start()
      events.start()
      held.start()
      await scheduler.start()
    }
    void begin().catch(failed('starting automations'))
  })
  host.stopping(async () => {
    scheduler.end()
    held.end()
    visits.end()
    await sites.flush()
  })

  host.contribute('system.manifestProblems', async () => {
    const { all, problems, wrong } = await definitions.read()
    const waiting = [...all.values()].filter(({ accepted }) => !accepted)
    return [
      {
        path: AUTOMATIONS_FILE,
        problems: [
          ...(wrong === undefined ? [] : [{ kind: 'unreadable' as const, detail: wrong }]),
          ...problems.map(({ id, message }) => ({ kind: 'invalidEntry' as const, detail: `${id}: ${message}` })),
          ...waiting.map(({ automation: { id } }) => ({
            kind: 'unaccepted' as const,
            detail: `${id}: it fires once a maintainer has saved it (sandbox automations upsert)`,
          })),
        ],
      },
    ]
  })
  host.contribute('personas.pointers', async () =>
    [...(await definitions.read()).all.values()].flatMap(({ automation }) => {
      const { id } = automation
      const persona = wornBy(automation)
      const kind = isWebchat(automation) ? ('webchat' as const) : ('automation' as const)
      return persona === undefined ? [] : [{ kind, id, label: id, persona }]
    }),
  )

  await host.serve(automations, recordingLimits(host, OPEN, automationCalls(host, parts)))
}
