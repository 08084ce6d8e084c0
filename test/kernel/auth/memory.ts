import { mock } from 'node:test'
import type { Context } from '../../../sdk/contract.js'
import { Refusal } from '../../../sdk/refusal.js'
import type { Caller } from '../../../sdk/types.js'
import { type Auth, type AuthOptions, createAuth } from '../../../kernel/auth/auth.js'
import type { KeptFiles } from '../../../sdk/node/files/kept.js'

/** Files in memory that outlive a daemon of the test, and can fail like a disk. */
export class MemoryFiles implements KeptFiles {
  readonly texts = new Map<string, string>()
  readonly writes: string[] = []
  /** Names whose next writes fail. */
  readonly full = new Set<string>()

  async read<T>(name: string): Promise<T | undefined> {
    const text = this.texts.get(name)
    return text === undefined ? undefined : JSON.parse(text)
  }

  async write(name: string, value: unknown): Promise<void> {
    const text = JSON.stringify(value)
    await new Promise(setImmediate)
    if (this.full.has(name)) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
    this.texts.set(name, text)
    this.writes.push(name)
  }

  async remove(name: string): Promise<void> {
    this.texts.delete(name)
  }
}

export const MINUTE = 60_000
export const DAY = 24 * 60 * MINUTE

export const owner: Caller = {
  kind: 'session',
  actor: 'owner@sandbox.local',
  role: 'owner',
  email: 'owner@sandbox.local',
  sessionId: 's',
}

export const contextOf = (caller: Caller = owner): Context => ({
  caller,
  signal: new AbortController().signal,
  trusted: true,
})

/** A started authentication with its clock, its files and its notifications. */
export interface Started {
  auth: Auth
  files: MemoryFiles
  clock: { now: number }
  ended: { sessionId?: string; tokenId?: string; email?: string }[]
  said: string[]
  /** Redeems a fresh login code. */
  signIn(address?: string): ReturnType<typeof signInWith>
}

const signInWith = async (auth: Auth, address: string) =>
  (
    await auth.handlers['kernel.session.open'](
      { login: await auth.mintLogin(), device: 'a browser', address },
      contextOf(),
    )
  ).session

export const started = async (
  options: Partial<AuthOptions> & { files?: MemoryFiles; clock?: { now: number } } = {},
): Promise<Started> => {
  const files = options.files ?? new MemoryFiles()
  const clock = options.clock ?? { now: 1_800_000_000_000 }
  const ended: Started['ended'] = []
  const said: string[] = []
  const auth = await createAuth({
    now: () => clock.now,
    identity: { claim: 'first', local: true },
    ended: what => void ended.push(what),
    say: line => void said.push(line),
    ...options,
    files,
  })
  auth.ticketsLast('bundle', 60 * MINUTE)
  return { auth, files, clock, ended, said, signIn: (address = '10.0.0.1') => signInWith(auth, address) }
}

/** Time and timers that advance only when the test ticks them. */
export const mockedTime = (t: { teardown(work: () => void): void }): { tick(ms: number): void } => {
  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: 1_800_000_000_000 })
  t.teardown(() => mock.timers.reset())
  return { tick: ms => mock.timers.tick(ms) }
}

/** The refusal that `work` throws or rejects with. */
export const refusalOf = async (work: () => unknown): Promise<Refusal> => {
  try {
    await work()
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
  throw new Error('expected a refusal, found an answer')
}
