import type { Handlers } from '../../contract.js'
import type { Kernel } from '../../kernel.js'
import type { Hidden } from './mask-forms.js'
import { Masker } from './masker.js'

/** The values of each daemon in this process; only tests run more than one. */
const byOwner = new Map<string, readonly Hidden[]>()
let masker = new Masker([])

/** Sets the values of an owner that logs must not show. */
export const maskInLogs = (owner: string, values: readonly Hidden[]): void => {
  if (values.length > 0) byOwner.set(owner, values)
  else byOwner.delete(owner)
  masker = new Masker([...byOwner.values()].flat())
}

/** Replaces stored values in a text by references. */
export const withoutStoredIn = (text: string): string => masker.mask(text)

/** Replaces stored values in a line of JSON by references. */
export const withoutStored = (line: string): string => {
  // A match may span JSON syntax, so the strings and keys of the parsed value are masked instead.
  if (masker.mask(line) === line) return line
  return JSON.stringify(masker.maskJson(JSON.parse(line))) + (line.endsWith('\n') ? '\n' : '')
}

/** Serves `kernel.redact.values`, which sets the values that this daemon's logs mask. */
export const redactCalls = (data: string): Pick<Handlers<Kernel>, 'kernel.redact.values'> => ({
  'kernel.redact.values': ({ values }) => {
    maskInLogs(data, values)
    return { ok: true }
  },
})
