import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { ApplyFrame } from '../../../plugins/capabilities/contract.js'
import type { DiskLine } from '../../../plugins/disks/contract.js'
import type { Client } from '../../../sdk/client.js'
import { daemonWith, folderOf, makeWorkspace, type Support } from '../../support/daemon.js'
import { detachAll } from '../../support/servers/share-servers.js'
import { type FakeVault, vaultFake } from '../capabilities/support.js'

/** A daemon with shares, and folders for servers. */
export interface DisksWorld {
  readonly daemon: Support
  readonly vault: FakeVault
  /** Where shares are mounted. */
  readonly mounts: string
  /** A new folder of this name. */
  folder(name: string): string
}

/** Starts the group with capabilities and a store of secrets; whatever is mounted is detached in the end. */
export const disksWorld = async (t: Test, others: readonly string[] = []): Promise<DisksWorld> => {
  const base = folderOf(t)
  const [workspace, data, mounts] = ['workspace', 'data', 'mnt'].map(name => join(base, name)) as [
    string,
    string,
    string,
  ]
  makeWorkspace(workspace)
  const vault = vaultFake()
  const daemon = await daemonWith(t, ['disks', 'capabilities', ...others], {
    workspace,
    data,
    fakes: vault.fakes,
    deployment: { mounts: { root: mounts } },
  })
  t.teardown(() => detachAll(mounts))
  const folder = (name: string) => {
    mkdirSync(join(base, name), { recursive: true })
    return join(base, name)
  }
  return { daemon, vault, mounts, folder }
}

/** Configures a share, and answers every step. */
export const addDisk = async (client: Client, id: string, config: object): Promise<ApplyFrame[]> => {
  const frames: ApplyFrame[] = []
  const given = { id, kind: 'disk' as const, config: { autoMount: 'off', ...config } as never }
  for await (const frame of await client.call('POST /capabilities', given)) frames.push(frame)
  return frames
}

/** Mounts a share, and answers every line. */
export const mountDisk = async (client: Client, id: string): Promise<DiskLine[]> => {
  const lines: DiskLine[] = []
  for await (const line of await client.call('POST /disks/{id}/mount', { id })) lines.push(line)
  return lines
}

/** One share of the list. */
export const diskIn = async (client: Client, id: string) =>
  (await client.call('GET /disks')).disks.find(disk => disk.id === id)!
