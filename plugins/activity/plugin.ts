import { type Context, type Host, Refusal } from '../../sdk/index.js'
import { Caps } from './caps.js'
import { activity, type ActivityInput } from './contract.js'
import { factsOf } from './entry.js'
import { listed } from './listing.js'
import { Recorder } from './record.js'
import { Segments } from './segments.js'

export const contract = activity

const MERGE = 2000

/** Keeps the record of what happened: appended by the daemon alone, each entry bound to the one before. */
export const activate = async (host: Host): Promise<void> => {
  const segments = new Segments(host.place.folder)
  const recorder = await Recorder.open(segments, Date.now)
  const caps = new Caps(Date.now)
  const tell = merged(host)

  const record = async (told: ActivityInput, { caller }: Context) => {
    const facts = factsOf(told, caller)
    for (const counted of caps.due('daily')) void recorder.record(counted).catch(() => {})
    const source = Caps.sourceOf(told, caller)
    if (source !== undefined && !caps.admits(source, facts)) return { id: '', seq: recorder.head.seq, at: recorder.head.at }
    const { id, seq, at } = await recorder.record(facts)
    tell()
    return { id, seq, at }
  }

  host.stopping(async () => {
    for (const counted of caps.due('now')) await recorder.record(counted).catch(() => {})
    await recorder.idle()
    await segments.close()
  })

  await host.serve(activity, {
    'GET /activity': (asked, context) => listed(asked, context.caller, {
      segments,
      seesConversation: async id => {
        if (!await host.serves('GET /agents/{id}')) return false
        return host.call('GET /agents/{id}', { id }, { as: context, signal: context.signal }).then(() => true, error => {
          if (error instanceof Refusal && error.reason === 'not-found') return false
          throw error
        })
      },
    }),
    'activity.record': record,
  })
}

/** Tells watchers that there are new entries, a burst of them once. */
const merged = (host: Pick<Host, 'call' | 'log' | 'signal'>): (() => void) => {
  let timer: NodeJS.Timeout | undefined
  host.signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  const publish = () => {
    timer = undefined
    host.call('kernel.events.publish', { domain: 'activity' }).catch(error => host.log.warn('nobody could be told of new entries', { error: String(error) }))
  }
  return () => void (timer ??= setTimeout(publish, MERGE).unref())
}
