import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { CapabilityStore } from '../../support/capability-store.js'
import { daemonWith } from '../../support/daemon.js'

// A daemon with the groups for models in its own process: its login socket refuses programs that it started itself.
const [, , folder = '', ...groups] = process.argv
const { MODELS } = process.env
const ends: (() => unknown)[] = []
const here = { teardown: (end: () => unknown) => ends.push(end) } as unknown as Test
const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
mkdirSync(workspace, { recursive: true })
await daemonWith(here, groups, {
  workspace,
  data,
  fakes: new CapabilityStore().fakes,
  ...(MODELS && { deployment: { models: JSON.parse(MODELS) } }),
})
process.once('SIGTERM', async () => {
  for (const end of ends) await end()
  process.exit()
})
process.stdout.write('ready\n')
