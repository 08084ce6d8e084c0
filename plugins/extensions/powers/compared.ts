import { createHash } from 'node:crypto'
import type { PowersDiff } from '../records/kept-extension.js'
import type { ExtensionPower } from './power.js'

/** A power in one line, with the sentence that people saw: the key alone does not say which command runs. */
const canonicalPower = ({ key, text }: ExtensionPower): string => JSON.stringify([key, text])

/** The digest that binds an approval to the powers that were shown. */
export const powersDigest = (id: string, powers: readonly ExtensionPower[]): string => {
  const lines = powers.map(canonicalPower).sort()
  return createHash('sha256')
    .update([id, ...lines].map(line => `${line}\n`).join(''))
    .digest('hex')
}

/** How powers differ from those that were approved before. */
export const comparedPowers = (now: readonly ExtensionPower[], before: readonly ExtensionPower[]): PowersDiff => {
  const [held, declared] = [linesOf(before), linesOf(now)]
  return {
    added: now.filter(power => !held.has(canonicalPower(power))).map(({ text }) => text),
    removed: before.filter(power => !declared.has(canonicalPower(power))).map(({ text }) => text),
    unchanged: now.filter(power => held.has(canonicalPower(power))).map(({ text }) => text),
  }
}

const linesOf = (powers: readonly ExtensionPower[]): ReadonlySet<string> => new Set(powers.map(canonicalPower))
