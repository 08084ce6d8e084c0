import type { DetectorId, FindingConfidence } from '../contract.js'

/** A place of a text that a detector takes for personal data. */
export interface Candidate {
  readonly start: number
  readonly end: number
  readonly detector: DetectorId
  readonly kind: string
  readonly confidence: FindingConfidence
  /** The national number, the list or the pattern. */
  readonly source?: string
  /** Equal for all spellings of one value. */
  readonly normal: string
}

/** What a regular expression finds, and a check that decides. */
export interface FormScan {
  readonly detector: DetectorId
  readonly kind: string
  readonly confidence: FindingConfidence
  readonly source?: string
  /** Global. Where it has a group `value`, that is the finding; it needs the flag `d`. */
  readonly form: RegExp
  readonly fits?: (value: string, text: string, start: number) => boolean
  readonly normalized?: (value: string) => string
}

/** Letters and digits alone, in capitals: for numbers that are written with separators. */
export const withoutSeparators = (value: string): string => value.replace(/[^0-9A-Za-z+]/g, '').toUpperCase()

/** The places of a text that fit a form. */
export const scannedPlaces = (text: string, scan: FormScan): Candidate[] => {
  const { detector, kind, confidence, source, form, fits, normalized = value => value.trim() } = scan
  const found: Candidate[] = []
  for (const match of text.matchAll(form)) {
    const [start, end] = match.indices?.groups?.['value'] ?? [match.index, match.index + match[0].length]
    const value = text.slice(start, end)
    if (fits && !fits(value, text, start)) continue
    found.push({
      ...{ start, end, detector, kind, confidence, normal: normalized(value) },
      ...(source !== undefined && { source }),
    })
  }
  return found
}
