import fs from 'node:fs/promises'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import type { CheckoutRepo } from '../../../plugins/agent/contract.js'

/** The landing of a child, and the write in the tree at which it is killed or the disk becomes full. */
export interface CrashOrder {
  readonly workspace: string
  readonly scratchRepos: string
  readonly records: string
  readonly branch: string
  readonly tip: string
  readonly checkout: CheckoutRepo
  readonly how: 'kill' | 'fail'
  readonly at: number
}

let writes = 0
const { how, at, workspace, scratchRepos, records, branch, tip, checkout } = JSON.parse(process.argv[2]!) as CrashOrder

for (const name of [
  'rename',
  'unlink',
  'copyFile',
  'mkdir',
  'symlink',
  ...(how === 'kill' ? (['rmdir'] as const) : []),
] as const) {
  const real = fs[name] as (...args: unknown[]) => Promise<unknown>
  Object.assign(fs, {
    [name]: async (...args: unknown[]) => {
      const inTree = args.slice(0, 2).findLast(value => typeof value === 'string') as string
      if (inTree.startsWith('/proc/self/fd/') && writes++ === at) {
        if (how === 'kill') process.kill(process.pid, 'SIGKILL')
        throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
      }
      return real(...args)
    },
  })
}
syncBuiltinESMExports()

/** JSON files in a folder, like the daemon's. */
const files = {
  read: async (name: string) => JSON.parse(readFileSync(join(records, name), 'utf8')),
  write: async (name: string, value: unknown) => {
    mkdirSync(join(records, name, '..'), { recursive: true })
    writeFileSync(join(records, name), JSON.stringify(value))
  },
  remove: async (name: string) => rmSync(join(records, name), { force: true }),
  list: async (prefix: string) => readdirSync(join(records, prefix)).map(name => prefix + name),
}

const { ScratchRepos } = await import('../../../plugins/agents/work/scratch-repos.js')
const { landRepo } = await import('../../../plugins/agents/landing/landing.js')
const { LandingRecords } = await import('../../../plugins/agents/landing/record.js')
const { Refs } = await import('../../../plugins/agents/work/git-folders.js')
const { KeyedMutex } = await import('../../../sdk/node/concurrency/keyed-mutex.js')
try {
  await landRepo(
    {
      workspace,
      scratchRepos: new ScratchRepos(scratchRepos, { workspace, data: scratchRepos }),
      refs: new Refs(),
      locks: new KeyedMutex(),
      records: new LandingRecords(files as never),
      now: Date.now,
    },
    { conversation: 'c-1', branch, span: 'outstanding' },
    checkout,
    tip,
  )
  console.log(JSON.stringify({ writes }))
} catch (error) {
  console.log(JSON.stringify({ writes, error: (error as { code?: string }).code ?? String(error) }))
}
