import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { ForgeHost } from '../../../plugins/pipelines/contract.js'
import type { Support, SupportOptions } from '../../support/daemon.js'
import { CapabilityStore } from '../../support/capability-store.js'
import { inGit } from '../../support/daemon.js'
import { repoAt } from '../git/support.js'
import { outboxWith } from '../outbox/support.js'
import { PROJECT, TestForge, TOKEN, type KeptRun } from './forge-server.js'

const WORKFLOW = 'jobs:\n  build:\n    steps: []\n  test:\n    name: Tests\n    needs: build\n    steps: []\n'
const PIPELINE = 'build:\n  script: make\nTests:\n  script: test\n  needs: [build]\n'

/** Files of a repository with a pipeline of every forge. */
export const PIPELINE_FILES = { '.github/workflows/ci.yml': WORKFLOW, '.gitlab-ci.yml': PIPELINE, 'a.txt': 'a\n' }

/** Connects a daemon's store of capabilities to a forge. */
export const connectForge = (store: CapabilityStore, forge: TestForge): void => {
  const { host: id } = forge
  store.records.set(id, { id, kind: 'cli', label: id, config: forge.config, secrets: ['token'] })
  store.values.set(`${id}/token`, TOKEN)
}

/** A repository in the folder named by the forge, with its remote there. */
export const repoOf = (workspace: string, { host, address }: TestForge): string => {
  const at = join(workspace, host)
  repoAt(at, PIPELINE_FILES)
  inGit(at, 'remote', 'add', 'origin', `git@${address}:${PROJECT}.git`)
  return inGit(at, 'rev-parse', 'HEAD').trim()
}

/** A daemon with a repository at each of these forges; every forge has an address of its own. */
export const forgesWith = async (
  t: Test,
  hosts: readonly ForgeHost[],
  groups: readonly string[],
  { fakes, ...options }: SupportOptions = {},
) => {
  const store = new CapabilityStore()
  const daemon = await outboxWith(t, ['pipelines', 'git', ...groups], {
    ...options,
    fakes: { ...store.fakes, ...fakes },
  })
  const forges = new Map<ForgeHost, TestForge>()
  const shas = new Map<ForgeHost, string>()
  for (const [at, host] of hosts.entries()) {
    const forge = await new TestForge(host, `127.0.0.${at + 1}`).listen(t)
    forges.set(host, forge)
    shas.set(host, repoOf(daemon.workspace, forge))
    connectForge(store, forge)
  }
  return { daemon, store, forge: (host: ForgeHost) => forges.get(host)!, shaOf: (host: ForgeHost) => shas.get(host)! }
}

const EVENT: { readonly [host in ForgeHost]: (run: KeptRun) => { [name: string]: string } } = {
  github: () => ({ 'x-github-event': 'workflow_run' }),
  gitlab: () => ({ 'x-gitlab-event': 'Pipeline Hook' }),
  forgejo: ({ status }) => ({ 'x-forgejo-event': `action_run_${status === 'failed' ? 'failure' : 'success'}` }),
  gitea: () => ({ 'x-gitea-event': 'workflow_run' }),
}

/** What a forge reports of a run. */
export const reportOf = (forge: TestForge, run: KeptRun): object => {
  const written = forge.written(run)
  const repository = { full_name: PROJECT }
  if (forge.host === 'gitlab')
    return {
      object_kind: 'pipeline',
      object_attributes: {
        ...written,
        finished_at: new Date(run.updatedAt).toISOString().replace(/T(.*)\.\d+Z/, ' $1 UTC'),
      },
      project: { path_with_namespace: PROJECT },
    }
  if (forge.host === 'forgejo') return { action: run.status, run: written }
  return { action: run.status === 'running' ? 'requested' : 'completed', workflow_run: written, repository }
}

/** The headers with which a forge proves a report. */
export const proofOf = (host: ForgeHost, secret: string, body: string): { [name: string]: string } => {
  const hmac = createHmac('sha256', secret).update(body).digest('hex')
  if (host === 'gitlab') return { 'x-gitlab-token': secret }
  return host === 'github' ? { 'x-hub-signature-256': `sha256=${hmac}` } : { [`x-${host}-signature`]: hmac }
}

/** Sends a report as the forge does, and returns the answer. */
export const reportTo = async (
  { url }: Pick<Support, 'url'>,
  forge: TestForge,
  run: KeptRun,
  secret: string,
): Promise<{ status: number; ignored?: true }> => {
  const body = JSON.stringify(reportOf(forge, run))
  return sendReport({ url }, forge.host, body, { ...EVENT[forge.host](run), ...proofOf(forge.host, secret, body) })
}

/** Sends a body with these headers to the address of a forge's reports. */
export const sendReport = async (
  { url }: Pick<Support, 'url'>,
  host: string,
  body: string,
  headers: { readonly [name: string]: string },
  query = '',
): Promise<{ status: number; ignored?: true }> => {
  const answer = await fetch(`${url}/ci/webhook/${host}${query}`, { method: 'POST', headers, body })
  return { status: answer.status, ...((await answer.json()) as object) }
}
