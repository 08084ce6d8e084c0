import type { OutdatedPackage } from '../contract.js'

const NUMBERS = /^[v=\s]*(?:\d+!)?(\d+)(?:\.(\d+))?(?:\.(\d+))?(.*)$/
const KINDS = ['major', 'minor', 'patch'] as const

/**
 * The first part of a version that is newer in another one; undefined: it is not newer, or one is no version.
 *
 * A version without an addition such as `-beta.1` is newer than the same with one.
 */
export const changeBetween = (current: string, latest: string): OutdatedPackage['kind'] | undefined => {
  const [, ...before] = NUMBERS.exec(current) ?? []
  const [, ...after] = NUMBERS.exec(latest) ?? []
  if (before.length === 0 || after.length === 0) return undefined
  for (const [index, kind] of KINDS.entries()) {
    const [one, other] = [Number(before[index] ?? 0), Number(after[index] ?? 0)]
    if (other > one) return kind
    if (other < one) return undefined
  }
  const [rest = '', newer = ''] = [before[3], after[3]]
  if (rest === newer) return undefined
  if (newer === '') return rest.startsWith('.') ? undefined : 'patch'
  if (rest === '') return newer.startsWith('.') ? 'patch' : undefined
  return newer.localeCompare(rest, 'en', { numeric: true }) > 0 ? 'patch' : undefined
}
