import { copyFileSync, existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Bundle, RestoreReport } from '../../../../plugins/system/contract.js'
import { createClient, type Client } from '../../../../sdk/client.js'
import { askSocket } from '../../../../sdk/cli/daemon/socket.js'
import type { RunningDaemon, Support } from '../../../support/daemon.js'
import { openEvents } from '../stream/events-support.js'
import type { Test } from 'tap'

/** A daemon that packs and restores, in this process or a separate one. */
export type Packer = Pick<Support | RunningDaemon, 'url' | 'session' | 'workspace' | 'data'> & {
  readonly client: Client
}

/** Packs a bundle and waits for its end. */
export const packed = async (
  t: Test,
  daemon: Packer,
  asked: { secrets?: boolean; passphrase?: string; repos?: string[]; since?: number } = {},
): Promise<Bundle> => {
  const events = await openEvents(t, daemon)
  await events.until('hello')
  const { name } = await daemon.client.call('POST /bundles', asked)
  for (;;) {
    const { exports } = await daemon.client.call('GET /bundles')
    const bundle = exports.find(each => each.name === name)
    if (bundle?.state !== 'packing') {
      await events.close()
      return bundle!
    }
    await events.until('runtimeChanged', ({ domains }) => domains.includes('bundles'))
  }
}

/** The path of a finished bundle on the disk. */
export const placeOf = ({ data }: Pick<Packer, 'data'>, name: string): string => join(data, 'system', 'exports', name)

/** Puts a bundle of one daemon into the workspace of another, like an upload. */
export const brought = (
  from: Pick<Packer, 'data'>,
  to: Pick<Packer, 'workspace'>,
  name: string,
  as = 'backup.tar.gz',
): string => {
  copyFileSync(placeOf(from, name), join(to.workspace, as))
  return as
}

/** The leftovers of a failed restore. */
export const leftOf = ({ workspace, data }: Pick<Packer, 'workspace' | 'data'>): string[] =>
  [
    join(workspace, '.sandbox/restored'),
    join(data, 'system/staged'),
    join(data, 'moves.json'),
    join(data, 'returned'),
  ].filter(path => existsSync(path))

export type { Bundle, RestoreReport }

/**
 * The daemon after it has restarted itself: at the same address, in the same process, its owner
 * signed in again.
 */
export const startedAnew = async (daemon: RunningDaemon, after: number): Promise<RunningDaemon> => {
  for (;;) {
    const { socket } = JSON.parse(await readFile(join(daemon.data, 'daemon.json'), 'utf8').catch(() => '{}')) as {
      socket?: string
    }
    const { token } = await askSocket<{ token?: string }>(socket ?? '', { do: 'session', device: 'test' }).catch(
      () => ({ token: undefined }),
    )
    const once = createClient({ url: daemon.url, session: token ?? '', retry: { attempts: 0 } })
    const info = await once.call('GET /info').catch(() => undefined)
    if (token && info && info.boot.startedAt >= after)
      return { ...daemon, session: token, client: createClient({ url: daemon.url, session: token }), once }
    await delay(20)
  }
}
