import { execFileSync } from 'node:child_process'
import { chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { WallKind } from '../../sdk/node/wall/wall.js'
import { folderOf } from '../support/daemon.js'

const NOBODY = 65534
const ME = process.getuid?.() ?? 0

/** Every user that a test can run as. */
export const USERS: readonly (readonly [user: string, uid: number])[] =
  ME === 0
    ? [
        ['the superuser', ME],
        ['an ordinary user', NOBODY],
      ]
    : [['an ordinary user', ME]]

/** The part of a long list of cases that a user of the list above tries: each case has one of them, in turn. */
export const shareOf = <T>(uid: number, cases: readonly T[]): readonly T[] =>
  cases.filter((_, at) => USERS[at % USERS.length]![1] === uid)

/**
 * Runs a program of attempts as a user in separate folders, and returns the JSON that it prints.
 *
 * Undefined if a wall of this kind does not start: in CI another test fails then.
 */
export const attempted = <T>(t: Test, program: string, kind: WallKind, uid: number): T | undefined => {
  const base = folderOf(t)
  mkdirSync(join(base, 'place'))
  for (const folder of [base, join(base, 'place')]) chownSync(folder, uid, uid)
  const printed = execFileSync(process.execPath, [fileURLToPath(new URL(program, import.meta.url)), kind, base], {
    encoding: 'utf8',
    cwd: '/',
    maxBuffer: 64 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(uid !== ME && { uid, gid: uid }),
    env: { PATH: process.env.PATH, HOME: join(base, 'place/home'), _TAPJS_PROCESSINFO_CWD_: base },
  })
  const found = JSON.parse(printed) as T | 'none'
  if (found !== 'none') return found
  if (process.env.CI) t.fail(`${kind} does not start here`)
  else t.pass(`skipped: ${kind} does not start here`)
  return undefined
}
