import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pathOfRepo, type Contract, type Host } from '../../sdk/index.js'
import { repeat } from '../../sdk/node/concurrency/repeat.js'
import { record } from '../../sdk/node/record/record.js'
import { Background, TICK_MS } from './background.js'
import { allRepos, choresCalls } from './calls.js'
import { ChoreBook } from './chore-book.js'
import { ChoreLane } from './chore-lane.js'
import { choresContract, type ChoresCalls } from './contract.js'
import { examples } from './examples.js'

export const contract: Contract<ChoresCalls> = { ...choresContract, examples }

/** Removes the temporary files of measurements that ended with the last daemon. */
const removeScratch = async ({ folder }: Host['place']): Promise<void> => {
  const names = (await readdir(folder)).filter(name => name.startsWith('scratch-'))
  await Promise.all(names.map(name => rm(join(folder, name), { recursive: true, force: true })))
}

/** Measures repositories one at a time, and keeps results and conclusions. */
export const activate = async (host: Host): Promise<void> => {
  const failed = (what: string) => (error: unknown) =>
    void (host.signal.aborted || host.log.error(`${what} failed`, { error: String(error) }))
  const publish = (repo: string) =>
    void host
      .call('kernel.events.publish', { domain: 'chores', key: repo, within: [pathOfRepo(repo)] })
      .catch(failed('publishing a measurement'))
  const isBusy = async () =>
    (await host.serves('agent.conversations'))
    && (await host.call('agent.conversations')).conversations.some(({ live }) => live !== undefined)

  const book = await ChoreBook.open(host.files)
  await removeScratch(host.place)
  const lane = new ChoreLane({
    ...{ book, isBusy, log: host.log, changed: publish },
    // Loaded when something is measured for the first time.
    measure: async (target, signal) => (await import('./measuring.js')).measureProbe(host, target, signal),
    failed: ({ repo, id }, reason) =>
      void record(host, {
        ...{ type: 'chore.probeFailed', audience: 'viewer', outcome: 'error', actor: 'sandbox:chores' },
        extra: { repo, probe: id, reason },
      }),
  })
  const background = new Background({ book, lane, isBusy, repos: () => allRepos(host) })
  repeat(host, TICK_MS, 'measuring in the background', () => background.tick())
  host.on('daemon.ready', () => lane.resume(book.asked))
  host.stopping(() => lane.end())
  await host.serve(choresContract, choresCalls({ host, book, lane, publish }))
}
