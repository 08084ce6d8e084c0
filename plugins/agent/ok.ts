import type { Ok } from '../../sdk/index.js'

/** Waits for work and returns the answer of a call that has no result. */
export const ok = async (work: Promise<unknown>): Promise<Ok> => {
  await work
  return { ok: true }
}
