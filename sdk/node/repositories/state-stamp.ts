import { lstatSync } from 'node:fs'

/** A more recent change may be followed by one with the same timestamp; the resolution depends on the file system. */
const FINE_MS = 100
const COARSE_MS = 2_000

/** The state of a file or folder; `racy`: a later change may leave it the same. Undefined: nothing is there. */
export const stateStamp = (path: string): { stamp: string; racy: boolean } | undefined => {
  try {
    const { dev, ino, ctimeNs } = lstatSync(path, { bigint: true })
    const age = Date.now() - Number(ctimeNs / 1_000_000n)
    return { stamp: `${dev} ${ino} ${ctimeNs}`, racy: age < (ctimeNs % 1_000_000n === 0n ? COARSE_MS : FINE_MS) }
  } catch {
    return undefined
  }
}
