// Removes from the installed packages what nothing here reads: the C headers of the pinned Node, since nothing is
// compiled, and source maps. They are a fifth of the disk space. npm runs it at the end of `npm ci`.
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const UNREAD = /^node\/node_modules\/[^/]+\/include$|\.map$/

for (const path of readdirSync('node_modules', { recursive: true }))
  if (UNREAD.test(path)) rmSync(join('node_modules', path), { recursive: true, force: true })
