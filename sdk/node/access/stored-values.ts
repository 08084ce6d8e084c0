import type { Handlers } from '../../contract.js'
import type { Kernel } from '../../kernel.js'
import type { Hidden } from './mask-forms.js'
import { Masker } from './masker.js'

/** The values of each daemon of this process: one, outside tests. */
const byOwner = new Map<string, readonly Hidden[]>()
let masker = new Masker([])

/** Replaces the values of an owner that no line of a log may show. */
export const maskInLogs = (owner: string, values: readonly Hidden[]): void => {
  if (values.length > 0) byOwner.set(owner, values)
  else byOwner.delete(owner)
  masker = new Masker([...byOwner.values()].flat())
}

/** A line of JSON in which references stand for stored values. */
export const withoutStored = (line: string): string => {
  // What is found may be more than the inside of one text, so what is replaced are texts and names.
  if (masker.mask(line) === line) return line
  return JSON.stringify(masker.maskJson(JSON.parse(line))) + (line.endsWith('\n') ? '\n' : '')
}

/** The call that replaces the values which the logs of this daemon mask. */
export const redactCalls = (data: string): Pick<Handlers<Kernel>, 'kernel.redact.values'> => ({
  'kernel.redact.values': ({ values }) => {
    maskInLogs(data, values)
    return { ok: true }
  },
})
