import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import type { Handlers } from '../../../sdk/contract.js'
import type { Api } from '../../../sdk/api.js'
import { daemonWith, folderOf, inGit, type Support } from '../../support/daemon.js'
import { clientOf, People } from '../../support/people.js'

/** A daemon that serves git, and people: `mai` a maintainer, `col` a collaborator, `ann` limited to `docs`. */
export interface GitWorld {
  readonly daemon: Support
  readonly client: Support['client']
  readonly workspace: string
  readonly as: (name: string) => Support['client']
}

/** Starts it with files in one commit; more groups can be served too. */
export const gitWorld = async (
  t: Test,
  files: { readonly [path: string]: string },
  groups: readonly string[] = [],
  fakes: Partial<Handlers<Api>> = {},
): Promise<GitWorld> => {
  // The author would be the person who runs the tests, if they have settings of git.
  const { HOME } = process.env
  process.env.HOME = folderOf(t)
  t.teardown(() => {
    process.env.HOME = HOME
  })
  const people = new People()
  people.add('owner@sandbox.local', 'owner')
  people.add('mai@example.org', 'maintainer')
  people.add('col@example.org', 'collaborator')
  people.add('vic@example.org', 'viewer')
  people.add('ann@example.org', 'viewer', ['docs'])
  const daemon = await daemonWith(t, ['git', 'areas', ...groups], { files, fakes: { ...people.fakes, ...fakes } })
  people.admit(daemon)
  const { client, workspace } = daemon
  return { daemon, client, workspace, as: name => clientOf(daemon, `${name}@example.org`) }
}

/** Writes files below a folder. */
export const put = (folder: string, files: { readonly [path: string]: string | Buffer }): void => {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
}

/** Runs git in a folder as a person would; answers its output and whether it succeeded. */
export const tryGit = (folder: string, ...args: string[]): { ok: boolean; out: string } => {
  try {
    return { ok: true, out: inGit(folder, ...args) }
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    return { ok: false, out: `${stdout}${stderr}` }
  }
}

/** Commits everything below a folder and answers the commit. */
export const commitAll = (folder: string, message: string): string => {
  inGit(folder, 'add', '-A')
  inGit(folder, 'commit', '-q', '-m', message)
  return inGit(folder, 'rev-parse', 'HEAD').trim()
}

/** Makes a repository with one commit. */
export const repoAt = (folder: string, files: { readonly [path: string]: string }, ...init: string[]): string => {
  mkdirSync(folder, { recursive: true })
  execFileSync('git', ['init', '-q', '-b', 'main', ...init], { cwd: folder })
  put(folder, files)
  return commitAll(folder, 'first')
}
