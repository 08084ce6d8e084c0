import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { InventoryEntry } from '../../../plugins/inventory/contract.js'
import { inGit } from '../../support/daemon.js'
import { gitWorld, type GitWorld } from '../git/support.js'

/** A machine as an entry. */
export const host = (name: string, address = '10.0.0.2'): InventoryEntry => ({
  kind: 'backend',
  provider: 'host',
  name,
  values: { address, user: 'deploy', hostKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE' },
})

/** A service on a machine. */
export const redis = (name: string, on: string, expose = ''): InventoryEntry => ({
  kind: 'service',
  service: 'redis',
  name,
  values: {},
  on,
  expose,
})

/** A daemon whose workspace has the repository of the deployment configuration. */
export interface InventoryWorld extends GitWorld {
  readonly intent: string
  readonly file: string
  text(): string
  head(): string
  /** How many commits there are. */
  commits(): number
  /** Writes the file as a person does, and commits it unless told otherwise. */
  byHand(text: string, commit?: boolean): void
}

/** Starts it; the repository is made by the daemon. */
export const inventoryWorld = async (t: Test, groups: readonly string[] = []): Promise<InventoryWorld> => {
  const world = await gitWorld(t, { 'docs/a.md': 'a\n' }, ['inventory', 'activity', 'workspace', 'secrets', ...groups])
  await world.client.call('POST /workspace/repos/init', { path: 'intent' })
  const intent = join(world.workspace, 'intent')
  const file = join(intent, 'deploy.config.json')
  return {
    ...world,
    intent,
    file,
    text: () => (existsSync(file) ? readFileSync(file, 'utf8') : ''),
    head: () => inGit(intent, 'rev-parse', 'HEAD').trim(),
    commits: () => Number(inGit(intent, 'rev-list', '--count', 'HEAD')),
    byHand: (text, commit = true) => {
      writeFileSync(file, text)
      if (!commit) return
      inGit(intent, 'add', '-A')
      inGit(intent, 'commit', '-q', '-m', 'By hand')
    },
  }
}
