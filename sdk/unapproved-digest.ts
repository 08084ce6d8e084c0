import { Refusal } from './refusal.js'

/** The digest to approve powers with, from the refusal of an extension whose powers nobody approved. */
export const unapprovedDigest = (error: unknown): string | undefined => {
  const digest = error instanceof Refusal && error.reason === 'conflict' ? error.detail.fields?.digest : undefined
  return typeof digest === 'string' ? digest : undefined
}
