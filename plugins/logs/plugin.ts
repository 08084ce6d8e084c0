import { type Contract, type Caller, type Context, type Host, type Input, refuse, ignored } from '../../sdk/index.js'
import { repeat } from '../../sdk/node/concurrency/repeat.js'
import { Catalogue } from './catalogue.js'
import { logs, type LogsCalls } from './contract.js'
import { examples } from './examples.js'
import { follow } from './follow.js'
import { ResumePositions } from './resume-positions.js'
import { sweepLogs } from './upkeep.js'
import { windowOf } from './window.js'

export const contract: Contract<LogsCalls> = { ...logs, examples }

const HOUR = 60 * 60_000
const LOOK = 10_000
const AT_ONCE = 8

/** Shows the logs that the daemon keeps. */
export const activate = async (host: Host): Promise<void> => {
  const catalogue = new Catalogue(host.place.logs)
  const followers = new Map<string, number>()
  const leftOff = new ResumePositions()
  tellOfChanges(host, catalogue)
  host.on('daemon.ready', () => {
    const tidy = () =>
      void sweepLogs(catalogue, Date.now()).catch(error =>
        host.log.warn('removing old logs failed', { error: String(error) }),
      )
    tidy()
    const timer = setInterval(tidy, HOUR).unref()
    host.signal.addEventListener('abort', () => clearInterval(timer), { once: true })
  })

  async function* followed(
    { name, from, level }: Input<LogsCalls, 'GET /logs/follow'>,
    { caller, http, signal }: Context,
  ) {
    const leave = enter(followers, caller)
    try {
      const reader = JSON.stringify([whoOf(caller), name])
      const last = /^\d{1,15}$/.test(http?.lastEventId ?? '') ? Number(http!.lastEventId) : undefined
      // A reader that reconnects repeats its first request and adds the header.
      const file = last === undefined ? await catalogue.open(name) : await leftOff.resume(catalogue, reader, name, last)
      return yield* follow(catalogue, file, {
        name,
        signal,
        reading: part => leftOff.reading(reader, part),
        ...(from !== undefined && { from }),
        ...(level && { level }),
      })
    } finally {
      leave()
    }
  }

  await host.serve(logs, {
    'GET /logs': async ({ kind, query }) => {
      const files = await catalogue.list()
      return {
        files: files.filter(
          file => (kind ?? file.kind) === file.kind && (query === undefined || file.name.includes(query)),
        ),
      }
    },
    'GET /logs/file': async ({ name, ...wanted }) => {
      await using file = await catalogue.open(name)
      return { name, ...(await windowOf(file, wanted)) }
    },
    'GET /logs/follow': (asked, context) => followed(asked, context),
  })
}

const whoOf = ({ email, actor }: Caller): string => email ?? actor

const enter = (followers: Map<string, number>, caller: Caller): (() => void) => {
  const who = whoOf(caller)
  const open = followers.get(who) ?? 0
  if (open >= AT_ONCE)
    refuse('too-many', `expected at most ${AT_ONCE} logs followed at once by one person; close one first`, {
      retryAfter: 1,
    })
  followers.set(who, open + 1)
  return () => {
    const now = followers.get(who)! - 1
    if (now > 0) followers.set(who, now)
    else followers.delete(who)
  }
}

/** Publishes when a log appears or is removed; new lines are sent only to followers. */
const tellOfChanges = (host: Host, catalogue: Catalogue): void => {
  let before: string | undefined
  const look = async () => {
    const names = (await catalogue.list())
      .map(({ name }) => name)
      .sort()
      .join('\n')
    const changed = before !== undefined && before !== names
    before = names
    if (changed) await host.call('kernel.events.publish', { domain: 'logs' })
  }
  repeat(host, LOOK, 'listing the logs', look)
  host.on('daemon.ready', () => void look().catch(ignored('the next look lists them')))
}
