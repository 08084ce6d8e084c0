import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

const COMPILED = new URL('../../../compiled/', import.meta.url).pathname
const isOwn = !existsSync(COMPILED) || lstatSync(COMPILED).uid === process.getuid?.()
/** The folder of the prepared repositories; a build removes it. A user who did not build has one of their own. */
const KEPT = isOwn ? `${COMPILED}repositories/` : join(process.cwd(), 'prepared-repositories')

/** Sizes in git's index, in bytes: the header, an entry without its name, the offset of its mode, the checksum. */
const [HEADER, ENTRY, MODE, CHECKSUM] = [12, 62, 24, 20]
const SECOND = 1_000_000_000n

/**
 * A git repository with these files, copied from one that `make` created for an earlier test: a copy takes a
 * sixth of the processor time of three git processes.
 */
export const copyRepository = (
  folder: string,
  files: { readonly [path: string]: string },
  make: (folder: string) => void,
): void => {
  const key = createHash('sha256').update(JSON.stringify(files)).digest('hex').slice(0, 32)
  const kept = join(KEPT, key)
  if (!existsSync(kept)) {
    mkdirSync(KEPT, { recursive: true })
    const made = mkdtempSync(join(KEPT, 'new-'))
    make(made)
    rmSync(join(made, '.git/hooks'), { recursive: true })
    mkdirSync(join(made, '.git/hooks'))
    try {
      renameSync(made, kept)
    } catch {
      // Another test file has created it meanwhile.
      rmSync(made, { recursive: true })
    }
  }
  cpSync(kept, folder, { recursive: true })
  renewIndex(folder)
}

/** Updates the file metadata in the index, so that git does not treat the copied files as changed. */
const renewIndex = (folder: string): void => {
  const path = join(folder, '.git/index')
  if (!existsSync(path)) return
  const index = readFileSync(path)
  let at = HEADER
  for (let left = index.readUInt32BE(8); left > 0; left--) {
    const end = index.indexOf(0, at + ENTRY)
    const file = lstatSync(join(folder, index.toString('utf8', at + ENTRY, end)), { bigint: true })
    const { ctimeNs, mtimeNs, dev, ino, uid, gid, size } = file
    const times = [ctimeNs / SECOND, ctimeNs % SECOND, mtimeNs / SECOND, mtimeNs % SECOND]
    const fields = [...times, dev, ino, BigInt(index.readUInt32BE(at + MODE)), uid, gid, size]
    if (file.isFile())
      for (const [place, field] of fields.entries())
        index.writeUInt32BE(Number(BigInt.asUintN(32, field)), at + place * 4)
    // One to eight zeros follow the name; entries are multiples of eight bytes.
    at += (end - at + 8) & ~7
  }
  const body = index.subarray(0, -CHECKSUM)
  writeFileSync(path, Buffer.concat([body, createHash('sha1').update(body).digest()]))
}
