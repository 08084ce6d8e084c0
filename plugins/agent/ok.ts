import type { Ok } from '../../sdk/index.js'

/** The answer of a call that has nothing to say but that it was done. */
export const ok = async (work: Promise<unknown>): Promise<Ok> => {
  await work
  return { ok: true }
}
