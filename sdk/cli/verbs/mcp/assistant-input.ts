import { Refusal } from '../../../refusal.js'
import { oneLine } from '../../terminal/text.js'

/** What an assistant gives a tool. */
export type ToolArguments = { readonly [name: string]: unknown }

const wrong = (name: string, expected: string, found: unknown): never => {
  const shown = typeof found === 'string' ? oneLine(found.slice(0, 80)) : found === undefined ? 'nothing' : typeof found
  throw new Refusal('invalid', `${name}: expected ${expected}, found ${shown}`)
}

/** A text that a tool needs. */
export const neededText = (args: ToolArguments, name: string): string => {
  const value = args[name]
  return typeof value === 'string' && value.trim() ? value : wrong(name, 'a text', value)
}

/** A text that may be left out. */
export const optionalText = (args: ToolArguments, name: string): string | undefined =>
  args[name] === undefined ? undefined : neededText(args, name)

/** A whole number that may be left out. */
export const optionalNumber = (args: ToolArguments, name: string, least: number, most: number): number | undefined => {
  const value = args[name]
  if (value === undefined) return undefined
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most
    ? value
    : wrong(name, `a whole number from ${least} to ${most}`, value)
}

/** Words in order, one or more. */
export const neededWords = (args: ToolArguments, name: string): string[] => {
  const value = args[name]
  const all = Array.isArray(value) ? (value as unknown[]) : [value]
  return all.length > 0 && all.length <= 20 && all.every(one => typeof one === 'string')
    ? (all as string[])
    : wrong(name, 'one to 20 texts', value)
}

/** The tips that a diff showed, by repository. */
export const neededTips = (args: ToolArguments): { [repo: string]: string } => {
  const value = args.expect
  const entries = typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : []
  return entries.length > 0 && entries.every(([, tip]) => typeof tip === 'string')
    ? Object.fromEntries(entries as [string, string][])
    : wrong('expect', 'the tips that the tool diff answered', value)
}
