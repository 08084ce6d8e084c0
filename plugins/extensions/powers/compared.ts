import { createHash } from 'node:crypto'
import type { PowersDiff } from '../records/kept-extension.js'
import type { ExtensionPower } from './power.js'

/** The digest that binds an approval to the powers that were shown. */
export const powersDigest = (id: string, powers: readonly ExtensionPower[]): string => {
  const keys = powers.map(({ key }) => key).sort()
  return createHash('sha256')
    .update([id, ...keys].map(line => `${line}\n`).join(''))
    .digest('hex')
}

/** How powers differ from those that were approved before. */
export const comparedPowers = (now: readonly ExtensionPower[], before: readonly ExtensionPower[]): PowersDiff => {
  const [held, declared] = [keysOf(before), keysOf(now)]
  return {
    added: now.filter(({ key }) => !held.has(key)).map(({ text }) => text),
    removed: before.filter(({ key }) => !declared.has(key)).map(({ text }) => text),
    unchanged: now.filter(({ key }) => held.has(key)).map(({ text }) => text),
  }
}

const keysOf = (powers: readonly ExtensionPower[]): ReadonlySet<string> => new Set(powers.map(({ key }) => key))
