import { refuse } from '../../../sdk/index.js'
import type { ForgeHost } from '../contract.js'
import type { ApiDescriptions } from './api-description.js'
import { projectPath } from './client.js'
import type { Dialect, ForgeRun } from './forge.js'
import {
  givenCount,
  givenList,
  givenObject,
  givenText,
  givenTime,
  givenUrl,
  givenFields,
  secondsBetween,
  statusOfWord,
  type GivenJson,
} from './given.js'
import { workflowJob, workflowRun } from './workflow-runs.js'

const MOST_LOG = 32 * 1024 * 1024
/** What these forges give at most. */
const ROWS = 50

const EVENTS: { readonly [host in 'forgejo' | 'gitea']: readonly string[] } = {
  forgejo: ['action_run_success', 'action_run_failure', 'action_run_recover'],
  gitea: ['workflow_run'],
}

/** A run as Forgejo writes it; undefined: it has no id. */
const actionRun = (given: GivenJson): ForgeRun | undefined => {
  const runId = givenCount(given.id, Number.MAX_SAFE_INTEGER)
  if (runId === undefined) return undefined
  const status = statusOfWord(givenText(given.status))
  const user = givenObject(given.trigger_user)
  const startedAt = givenTime(given.started)
  const updatedAt = givenTime(given.updated)
  const createdAt = givenTime(given.created) ?? startedAt ?? updatedAt ?? 0
  const finishedAt = status === 'running' ? undefined : (givenTime(given.stopped) ?? updatedAt)
  return {
    ...{ runId, status, branch: givenText(given.prettyref), sha: givenText(given.commit_sha, 64) },
    ...{ url: givenUrl(given.html_url), createdAt, updatedAt: updatedAt ?? createdAt },
    ...givenFields({
      number: givenCount(given.index_in_repo),
      title: givenText(given.title),
      workflow: givenText(given.workflow_id),
      authorName: givenText(user.login),
      authorAvatarUrl: givenUrl(user.avatar_url),
      trigger: givenText(given.trigger_event ?? given.event),
      finishedAt,
      durationSeconds: secondsBetween(startedAt, finishedAt),
    }),
  }
}

/** The fields of a run say which of the two wrote it, because versions differ. */
const runOf = (given: GivenJson): ForgeRun | undefined =>
  given.prettyref !== undefined || given.commit_sha !== undefined ? actionRun(given) : workflowRun(given)

const actionsAt = (project: string): string => `/repos/${projectPath(project)}/actions`

/** Forgejo Actions or Gitea Actions: what a version can do, it says itself. */
export const forgejo = (host: ForgeHost & ('forgejo' | 'gitea'), descriptions: ApiDescriptions): Dialect => ({
  host,
  api: site => `${site.href.replace(/\/+$/, '')}/api/v1`,
  headers: token => ({ authorization: `token ${token}`, accept: 'application/json' }),
  powers: async client => {
    const { runs, run: _run, ...powers } = await descriptions.of(client)
    if (!runs) refuse('dependency', `${client.site.host} lists no runs: this version of ${host} is too old`)
    return powers
  },
  runs: async (client, project, page) => {
    // Their pages are shorter: two of them make one.
    const rows: GivenJson[] = []
    for (const half of [2 * page - 1, 2 * page]) {
      const path = `${actionsAt(project)}/runs?limit=${ROWS}&page=${half}`
      const found = givenList(givenObject(await client.json({ path })).workflow_runs)
      rows.push(...found)
      if (found.length < ROWS) break
    }
    return rows.flatMap(each => runOf(each) ?? [])
  },
  run: async (client, project, id) =>
    runOf(givenObject(await client.json({ path: `${actionsAt(project)}/runs/${id}` })))
    ?? refuse('dependency', `${client.site.host} answered no run`),
  jobs: async (client, project, id) => {
    const answer = await client.json({ path: `${actionsAt(project)}/runs/${id}/jobs?limit=${ROWS}` })
    return givenList(Array.isArray(answer) ? answer : givenObject(answer).jobs).map(workflowJob)
  },
  log: (client, project, job) =>
    client.text({ path: `${actionsAt(project)}/jobs/${encodeURIComponent(job)}/logs`, maxBytes: MOST_LOG }),
  rerun: async (client, project, id, failedOnly) => {
    const path = `${actionsAt(project)}/runs/${id}/${failedOnly ? 'rerun-failed-jobs' : 'rerun'}`
    await client.text({ method: 'POST', path })
  },
  cancel: async (client, project, id) =>
    void (await client.text({ method: 'POST', path: `${actionsAt(project)}/runs/${id}/cancel` })),
  hooks: async (client, project) =>
    givenList(await client.json({ path: `/repos/${projectPath(project)}/hooks?limit=${ROWS}` })).map(hook => ({
      id: givenCount(hook.id, Number.MAX_SAFE_INTEGER) ?? 0,
      url: givenText(givenObject(hook.config).url, 2000),
    })),
  putHook: async (client, project, { id, url, secret }) => {
    const path = `/repos/${projectPath(project)}/hooks`
    const body = { active: true, events: EVENTS[host], config: { url, secret, content_type: 'json' } }
    const made = givenObject(
      await client.json(
        id === undefined
          ? { method: 'POST', path, body: { type: host, ...body } }
          : { method: 'PATCH', path: `${path}/${id}`, body },
      ),
    )
    return givenCount(made.id, Number.MAX_SAFE_INTEGER) ?? refuse('dependency', `${client.site.host} made no webhook`)
  },
  reported: (event, body) => {
    const isAction = event.startsWith('action_run_')
    if (!isAction && (event !== 'workflow_run' || body.action !== 'completed')) return undefined
    const given = givenObject(isAction ? body.run : body.workflow_run)
    const run = runOf(given)
    if (!run || run.status === 'running') return undefined
    const { full_name } = givenObject(body.repository ?? given.repository)
    return { project: givenText(full_name), run }
  },
})
