import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../daemon.js'

/** The stand-in of `llama-server` as a program in a folder of its own. */
export const llamaProgram = (folder: string) => {
  const bin = join(folder, 'llama')
  mkdirSync(bin, { recursive: true })
  const program = join(bin, 'llama-server')
  const script = join(root, 'test', 'support', 'servers', 'llama-server.js')
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${script}' --launched '${bin}' "$@"\n`)
  chmodSync(program, 0o755)
  const hold = join(bin, 'hold')
  return {
    program,
    /** Keeps servers loading until `release`. */
    hold: () => writeFileSync(hold, ''),
    release: () => rmSync(hold, { force: true }),
    /** Removes the program. */
    missing: () => rmSync(program),
  }
}
