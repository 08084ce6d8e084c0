import type { Handlers } from '../../contract.js'
import type { Kernel } from '../../kernel.js'
import type { Hidden } from './mask-forms.js'
import { Masker } from './masker.js'
import { redacted, visible } from './redact.js'

/** The most characters of a report, and those that are looked at for it. */
const MOST_REPORT = 64 * 1024
const MOST_READ = 1024 * 1024

/** The values of each daemon in this process; only tests run more than one. */
const byOwner = new Map<string, readonly Hidden[]>()
let masker = new Masker([])

/** Sets the values of an owner that logs must not show. */
export const maskInLogs = (owner: string, values: readonly Hidden[]): void => {
  if (values.length > 0) byOwner.set(owner, values)
  else byOwner.delete(owner)
  masker = new Masker([...byOwner.values()].flat())
}

/** A text as a report of a failure may hold it: without secrets and terminal sequences, and not endless. */
export const reportText = (text: string): string => {
  // What is looked for is looked for before the text is cut to its length.
  const safe = visible(redacted(masker.mask(text.slice(0, MOST_READ))))
  return safe.length > MOST_REPORT ? `${safe.slice(0, MOST_REPORT).toWellFormed()}…\n` : safe
}

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
