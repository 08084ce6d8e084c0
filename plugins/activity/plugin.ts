import { type Contract, type Context, type Host, refuse, warned } from '../../sdk/index.js'
import { Caps } from './caps.js'
import { activity, type ActivityInput, type ActivityCalls } from './contract.js'
import { examples } from './examples.js'
import { factsOf } from './entry.js'
import { exported } from './export.js'
import { listed } from './listing.js'
import { Recorder } from './record.js'
import { retain, sizeOf } from './retention.js'
import { Segments } from './segments.js'
import { MarkFile, Verification } from './verification.js'

export const contract: Contract<ActivityCalls> = { ...activity, examples }

const MERGE = 2000
const DAILY = 24 * 60 * 60_000

/** Keeps the activity record: only the daemon appends to it, and each entry contains the hash of the previous one. */
export const activate = async (host: Host): Promise<void> => {
  const now = Date.now
  const days = new Segments(host.place.folder, 'days')
  const kept = new Segments(host.place.folder, 'kept')
  const marks = await MarkFile.open(host.files)
  const recorder = await Recorder.open(days, now, marks.marks.seen)
  const caps = new Caps(now)
  const tell = merged(host)
  const verification = new Verification({
    segments: days,
    recorder,
    marks,
    now,
    record: async facts => {
      host.log.error('the activity record was changed', facts.extra)
      tell()
      return recorder.record(facts)
    },
  })

  const record = async (told: ActivityInput, { caller }: Pick<Context, 'caller'>) => {
    const facts = factsOf(told, caller)
    for (const counted of caps.due('daily'))
      void recorder.record(counted).catch(warned(host, 'recording what was counted'))
    const source = Caps.sourceOf(told, caller)
    if (source !== undefined && !caps.admits(source, facts))
      return { id: '', seq: recorder.head.seq, at: recorder.head.at }
    const { id, seq, at } = await recorder.record(facts)
    tell()
    return { id, seq, at }
  }

  let keeping = Promise.resolve()
  const keep = async (): Promise<void> => {
    try {
      await verification.verify()
      await retain({ days, kept, marks, now })
    } catch (error) {
      host.log.error('verifying the activity record failed', { error: String(error) })
    }
  }
  host.on('daemon.ready', () => {
    keeping = keep()
    const daily = setInterval(() => void (keeping = keep()), DAILY).unref()
    host.signal.addEventListener('abort', () => clearInterval(daily), { once: true })
  })

  host.stopping(async () => {
    for (const counted of caps.due('now'))
      await recorder.record(counted).catch(warned(host, 'recording what was counted'))
    await keeping
    await recorder.idle()
    await Promise.all([days.close(), kept.close()])
  })

  await host.serve(activity, {
    'GET /activity': (asked, context) =>
      listed(asked, context.caller, {
        segments: [days, kept],
        seesConversation: async id => {
          if (!(await host.serves('agent.visible'))) return false
          const { ids } = await host.call('agent.visible', { ids: [id] }, { as: context, signal: context.signal })
          return ids.includes(id)
        },
      }),
    'GET /activity/status': async () => {
      const { oldestAt, ...chain } = await verification.status()
      const bytes = (await sizeOf(days, await days.names())) + (await sizeOf(kept, await kept.names()))
      const { connections } = (await host.serves('extensions.listening'))
        ? await host.call('extensions.listening')
        : { connections: [] }
      return { connections, chain, bytes, ...(oldestAt !== undefined && { oldestAt }) }
    },
    'GET /activity/export': async ({ from, to }, context) => {
      if (from !== undefined && to !== undefined && from > to) {
        refuse('invalid', 'from: expected a moment not after to, found one', {
          errors: [{ path: 'from', expected: 'a moment not after to' }],
        })
      }
      await record(
        {
          type: 'activity.exported',
          direction: 'system',
          audience: 'maintainer',
          outcome: 'ok',
          extra: { ...(from !== undefined && { from }), ...(to !== undefined && { to }) },
        },
        context,
      )
      const name = `activity-${new Date(now()).toISOString().slice(0, 10)}.ndjson`
      const headers = { 'content-disposition': `attachment; filename="${name}"` }
      return {
        'content-type': 'application/x-ndjson' as const,
        headers,
        data: exported(days, { ...(from !== undefined && { from }), ...(to !== undefined && { to }) }),
      }
    },
    'activity.record': record,
  })
}

/** Publishes that there are new entries, once per burst. */
const merged = (host: Pick<Host, 'call' | 'log' | 'signal'>): (() => void) => {
  let timer: NodeJS.Timeout | undefined
  host.signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  const publish = () => {
    timer = undefined
    host
      .call('kernel.events.publish', { domain: 'activity' })
      .catch(error => host.log.warn('publishing new entries failed', { error: String(error) }))
  }
  return () => void (timer ??= setTimeout(publish, MERGE).unref())
}
