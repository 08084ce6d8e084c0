import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { daemonWith, folderOf, inGit, makeWorkspace, type SupportOptions } from '../../support/daemon.js'
import { runTurn } from '../../support/turns.js'
import { bytesOf, tripwire } from '../support.js'

const GROUPS = ['system', 'agent', 'agents']
const FILES = { 'README.md': '# work\n', 'src/a.txt': 'one\n', '.gitignore': '*.log\n' }
/** The files that the daemon imports from a turn: valid objects, its own branch, and that branch's reflog. */
const TAKEN_OVER = /^(objects|refs\/heads\/agent|logs\/refs\/heads\/agent)(\/|$)|^(logs\/refs|logs\/refs\/heads)$/

/**
 * A daemon on a repository of a person, with folders outside and a tripwire that only an escaped program can trigger.
 */
export const placeWith = async (
  t: Test,
  {
    files = FILES,
    prepare,
    ...options
  }: SupportOptions & { prepare?: (workspace: string, wire: ReturnType<typeof tripwire>) => void } = {},
) => {
  const folder = folderOf(t)
  const [workspace, data, elsewhere] = [join(folder, 'workspace'), join(folder, 'data'), join(folder, 'elsewhere')]
  makeWorkspace(workspace, files)
  mkdirSync(elsewhere)
  writeFileSync(join(elsewhere, 'file'), 'elsewhere\n')
  const wire = tripwire(data)
  prepare?.(workspace, wire)
  const daemon = await daemonWith(t, GROUPS, { ...options, workspace, data })
  return { ...daemon, elsewhere, wire, common: join(workspace, '.git') }
}

export type Place = Awaited<ReturnType<typeof placeWith>>

/** Every call of the daemon that uses the work of a conversation. */
export const useAll = async ({ client }: Place, id: string): Promise<string[]> => {
  const told: string[] = []
  const tell = async (what: string, work: Promise<unknown>) =>
    told.push(
      `${what}: ${await work.then(
        () => 'ok',
        (error: Error) => error.message,
      )}`,
    )
  await tell('roster', client.call('GET /agents'))
  await tell('card', client.call('GET /agents/{id}', { id }))
  await tell('diff', client.call('GET /agents/{id}/diff', { id }))
  await tell('file', client.call('GET /agents/{id}/{repo}/file-diff', { id, repo: 'root', path: 'README.md' }))
  await tell('check', client.call('POST /agents/{id}/land', { id, mode: 'check' }))
  await tell('land', client.call('POST /agents/{id}/land', { id }))
  await tell('turn', runTurn(client, id, 'say again'))
  await tell('all', client.call('POST /agents/{id}/land', { id, span: 'cumulative' }))
  return told
}

const refsOf = (workspace: string): string[] =>
  inGit(workspace, 'for-each-ref', '--format=%(refname) %(objectname)')
    .trim()
    .split('\n')
    .filter(line => !line.startsWith('refs/heads/agent/'))

/** Everything that an isolated turn must not change: refs, git folder, and files beside the workspace. */
export const stateOf = ({ workspace, common, elsewhere }: Place) => ({
  head: inGit(workspace, 'rev-parse', 'HEAD', 'main'),
  refs: refsOf(workspace),
  git: bytesOf(common, TAKEN_OVER),
  elsewhere: bytesOf(elsewhere),
})
