import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Copies } from '../../../../plugins/agent/copies/copies.js'
import { listEnv } from '../../../../sdk/node/programs/run.js'

/** The variables of a person's git. */
export const env = {
  ...listEnv(),
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'P',
  GIT_AUTHOR_EMAIL: 'p@example.com',
  GIT_COMMITTER_NAME: 'P',
  GIT_COMMITTER_EMAIL: 'p@example.com',
}
/** Runs git like a user, and returns its output without the final newline. */
export const git = (cwd: string, ...args: string[]) =>
  execFileSync('git', args, { cwd, encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'pipe'] }).trim()

/** Commits files and returns the commit. */
export const commit = (cwd: string, files: { [path: string]: string }, message: string) => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(cwd, path, '..'), { recursive: true })
    writeFileSync(join(cwd, path), text)
    git(cwd, 'add', '--', path)
  }
  git(cwd, 'commit', '-qm', message)
  return git(cwd, 'rev-parse', 'HEAD')
}

/** Every file below a folder with its bytes and mode, except git's own. */
export const bytesOf = (folder: string) => {
  const found: { [path: string]: string } = {}
  for (const name of readdirSync(folder, { recursive: true }) as string[]) {
    if (/(^|\/)\.git(\/|$)/.test(name)) continue
    const path = join(folder, name)
    const stat = lstatSync(path)
    if (stat.isSymbolicLink()) found[name] = `link ${readlinkSync(path)}`
    else if (stat.isFile())
      found[name] = `${stat.mode} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`
  }
  return found
}

/** The git dir of a copy, as its note names it. */
export const gitdirOf = (data: string, id: string, at = 0): string => {
  const { repos } = JSON.parse(readFileSync(join(data, 'plugins/agent/made', `${id}.json`), 'utf8')) as {
    repos: { gitdir: string }[]
  }
  return repos[at]!.gitdir
}

/** Bytes that are not text. */
export const BYTES = Buffer.from([0, 255, 10, 13, 10, 195, 40])

/** A workspace with two commits, and the private copies beside it. */
export const place = (t: Test, nested = false) => {
  const top = realpathSync(t.testdir({ work: {}, data: { plugins: { agent: {} } } }))
  const workspace = join(top, 'work')
  const data = join(top, 'data')
  git(workspace, 'init', '-q', '-b', 'main')
  writeFileSync(join(workspace, 'bytes.bin'), BYTES)
  writeFileSync(join(workspace, 'run.sh'), '#!/bin/sh\n')
  chmodSync(join(workspace, 'run.sh'), 0o755)
  symlinkSync('a b ü.txt', join(workspace, 'link'))
  git(workspace, 'add', '-A')
  commit(workspace, { 'a b ü.txt': 'one\n', '.gitignore': 'node_modules/\n*.log\n' }, 'first')
  commit(workspace, { 'src/日本.ts': 'export const a = 1\n' }, 'second')
  if (nested) {
    const inner = join(workspace, 'clients/foo bar')
    mkdirSync(inner, { recursive: true })
    git(inner, 'init', '-q', '-b', 'trunk')
    commit(inner, { 'inner.txt': 'inner\n' }, 'inner first')
  }
  const again = () => new Copies({ workspace, folder: join(data, 'plugins/agent'), data })
  return { workspace, data, copies: again(), again, dir: join(data, 'plugins/agent/checkouts/c-1') }
}
