import { readFile } from 'node:fs/promises'
import type { DiskVia } from '../contract.js'

/** One mount of this machine. */
export interface MountRow {
  readonly folder: string
  readonly type: string
  readonly source: string
  readonly readOnly: boolean
  /** What carries it, if it is one of the carriers of shares. */
  readonly via?: DiskVia
}

/** The mounts in the text of `/proc/self/mountinfo` (proc(5)), by folder: of several on one the last, which is seen. */
export const parseMountInfo = (text: string): Map<string, MountRow> => {
  const rows = new Map<string, MountRow>()
  for (const line of text.split('\n')) {
    const [before, after] = line.split(' - ')
    const [, , , , folder, options] = before?.split(' ') ?? []
    const [type, source, superOptions] = after?.split(' ') ?? []
    if (folder === undefined || type === undefined || source === undefined) continue
    const flags = [options ?? '', superOptions ?? ''].flatMap(list => list.split(','))
    const row = { folder: unescaped(folder), type, source: unescaped(source), readOnly: flags.includes('ro') }
    const via = viaOf(type, row.source)
    rows.set(row.folder, { ...row, ...(via && { via }) })
  }
  return rows
}

/** The mounts of this machine now. It asks the kernel alone, never a server. */
export const readMountTable = async (): Promise<Map<string, MountRow>> =>
  parseMountInfo(await readFile('/proc/self/mountinfo', 'utf8'))

/** The kernel writes blanks, tabs, line ends and backslashes as octal numbers. */
const unescaped = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)))

const viaOf = (type: string, source: string): DiskVia | undefined => {
  if (type === 'cifs' || type === 'smb3') return 'cifs'
  if (type === 'nfs' || type === 'nfs4') return 'nfs'
  if (type === 'fuse.sshfs') return 'sshfs'
  if (type === 'fuse.rclone') return 'rclone'
  return type === 'fuse' && /^https?:/.test(source) ? 'davfs2' : undefined
}
