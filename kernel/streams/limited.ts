import type { FrameForms, PlacedForm } from '../../sdk/kernel.js'
import { accessTo, type ReachFolder } from '../../sdk/reach.js'

/** The part of a frame that a person limited to areas receives; undefined: nothing. */
export const limitedTo = (
  reach: readonly ReachFolder[],
  data: object,
  { forms, list, sums }: FrameForms,
): object | undefined => {
  const inside = (place: string) => accessTo(reach, place) !== undefined
  const fitting = (each: readonly PlacedForm[]) => each.find(({ within }) => within.every(inside))?.value
  const whole = forms ? fitting(forms) : data
  if (!whole) return undefined
  const items = list && { [list.field]: list.items.flatMap(each => fitting(each) ?? []) }
  return { ...(whole as object), ...items, ...(sums && summed(sums, inside)) }
}

const summed = (
  { fields, parts }: FrameForms['sums'] & {},
  inside: (place: string) => boolean,
): { [field: string]: number } => {
  const reached = parts.filter(({ within }) => within.every(inside))
  return Object.fromEntries(fields.map(field => [field, reached.reduce((sum, { add }) => sum + (add[field] ?? 0), 0)]))
}

const names = new WeakMap<readonly ReachFolder[], string>()

/** A cache key: equal reaches have the same key. */
export const nameOf = (reach: readonly ReachFolder[]): string => {
  const known = names.get(reach) ?? JSON.stringify(reach.map(({ path, access }) => [path, access]))
  names.set(reach, known)
  return known
}
