import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inGit } from '../support/daemon.js'

const FILES_A_FOLDER = 12
const DEPENDENCIES = 200

/** The content of a file. */
export const text = (seed: number): string => `export const value${seed} = ${seed}\n`.repeat(60)
/** The path of a file. */
export const nameOf = (file: number): string => {
  const folder = Math.floor(file / FILES_A_FOLDER)
  return `packages/p${folder % 40}/src/s${Math.floor(folder / 40) % 20}/f${Math.floor(folder / 800)}/file-${file}.ts`
}

/** Makes a repository with this number of files, and a folder of dependencies that git ignores. */
export const makeRepository = (workspace: string, files: number): void => {
  mkdirSync(workspace, { recursive: true })
  inGit(workspace, 'init', '-q', '-b', 'main')
  const file = (name: string, body: string) => `M 100644 inline ${name}\ndata ${body.length}\n${body}\n`
  const stream = [
    'commit refs/heads/main\ncommitter Ada <ada@example.org> 1700000000 +0000\ndata 5\nfirst\n',
    file('.gitignore', 'node_modules/\n'),
  ]
  for (let seed = 0; seed < files - 1; seed++) stream.push(file(nameOf(seed), text(seed)))
  execFileSync('git', ['fast-import', '--quiet'], { cwd: workspace, input: stream.join(''), maxBuffer: 1 << 30 })
  inGit(workspace, 'reset', '-q', '--hard')
  for (let seed = 0; seed < DEPENDENCIES; seed++) {
    mkdirSync(join(workspace, `node_modules/dep-${seed}/lib`), { recursive: true })
    writeFileSync(join(workspace, `node_modules/dep-${seed}/lib/index.js`), text(seed))
  }
}
