import { readlinkSync } from 'node:fs'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'

// Loaded into a daemon before anything else: kills it at its first write below a folder that the test names.
const below = process.env['KILL_BELOW']

/** Resolves a path that names a folder by its descriptor. */
const placeOf = (path: string): string => {
  const [, descriptor, name] = /^(\/proc\/self\/fd\/\d+)\/(.*)$/.exec(path) ?? []
  return descriptor === undefined ? path : join(readlinkSync(descriptor), name!)
}

for (const name of ['rename', 'unlink', 'copyFile', 'mkdir'] as const) {
  const real = fs[name] as (...args: unknown[]) => Promise<unknown>
  Object.assign(fs, {
    [name]: async (...args: unknown[]) => {
      const target = args.slice(0, 2).findLast(value => typeof value === 'string') as string | undefined
      if (below !== undefined && target?.startsWith('/proc/self/fd/') && placeOf(target).startsWith(`${below}/`)) {
        process.kill(process.pid, 'SIGKILL')
      }
      return real(...args)
    },
  })
}
syncBuiltinESMExports()
