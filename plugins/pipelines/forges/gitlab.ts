import { refuse } from '../../../sdk/index.js'
import { PAGE, type Dialect, type ForgeJob, type ForgeRun } from './forge.js'
import {
  givenCount,
  givenList,
  givenNames,
  givenObject,
  givenText,
  givenTime,
  givenUrl,
  givenFields,
  secondsBetween,
  statusOfWord,
  type GivenJson,
} from './given.js'

const MOST_LOG = 32 * 1024 * 1024
const DEFINITION = '.gitlab-ci.yml'

const projectAt = (project: string): string => `/projects/${encodeURIComponent(project)}`
const pipelineAt = (project: string, id: number): string => `${projectAt(project)}/pipelines/${id}`

/** The times of webhooks are written as `2026-01-31 12:00:00 UTC`. */
const timeOf = (value: unknown): number | undefined =>
  givenTime(typeof value === 'string' ? value.replace(/^(\S+) (\S+) UTC$/, '$1T$2Z') : value)

const pipelineOf = (given: GivenJson, user: GivenJson = givenObject(given.user)): ForgeRun | undefined => {
  const runId = givenCount(given.id, Number.MAX_SAFE_INTEGER)
  if (runId === undefined) return undefined
  const status = statusOfWord(givenText(given.status))
  const updatedAt = timeOf(given.updated_at) ?? timeOf(given.finished_at)
  const createdAt = timeOf(given.created_at) ?? updatedAt ?? 0
  const finishedAt = status === 'running' ? undefined : (timeOf(given.finished_at) ?? updatedAt)
  return {
    ...{ runId, status, branch: givenText(given.ref), sha: givenText(given.sha, 64) },
    ...{ url: givenUrl(given.web_url ?? given.url), createdAt, updatedAt: updatedAt ?? createdAt },
    definition: DEFINITION,
    ...givenFields({
      number: givenCount(given.iid),
      title: givenText(given.name),
      authorName: givenText(user.name),
      authorAvatarUrl: givenUrl(user.avatar_url),
      trigger: givenText(given.source),
      finishedAt,
      durationSeconds: givenCount(given.duration) ?? secondsBetween(createdAt, finishedAt),
    }),
  }
}

const jobOf = (given: GivenJson): ForgeJob => {
  const startedAt = timeOf(given.started_at)
  const status = statusOfWord(givenText(given.status))
  const finishedAt = status === 'running' ? undefined : timeOf(given.finished_at)
  return {
    ...{ id: givenText(given.id), name: givenText(given.name), status },
    ...givenFields({
      stage: givenText(given.stage),
      needs: givenNames(given.needs),
      startedAt,
      finishedAt,
      durationSeconds: secondsBetween(startedAt, finishedAt),
      webUrl: givenUrl(given.web_url),
    }),
  }
}

/** GitLab CI, of gitlab.com and of servers. Its interface retries what failed, and never a whole pipeline. */
export const gitlab: Dialect = {
  host: 'gitlab',
  api: site => new URL('/api/v4', site).href,
  // Unlike `private-token`, this header does not follow a redirect to the storage of logs.
  headers: token => ({ authorization: `Bearer ${token}`, accept: 'application/json' }),
  powers: async () => ({ rerun: false, rerunFailed: true, cancel: true, jobs: true, log: true }),
  runs: async (client, project, page) => {
    const path = `${projectAt(project)}/pipelines?per_page=${PAGE}&page=${page}&order_by=id&sort=desc`
    return givenList(await client.json({ path })).flatMap(each => pipelineOf(each) ?? [])
  },
  run: async (client, project, id) =>
    pipelineOf(givenObject(await client.json({ path: pipelineAt(project, id) })))
    ?? refuse('dependency', `${client.site.host} answered no pipeline`),
  jobs: async (client, project, id) =>
    givenList(await client.json({ path: `${pipelineAt(project, id)}/jobs?per_page=${PAGE}` })).map(jobOf),
  log: (client, project, job) =>
    client.text({ path: `${projectAt(project)}/jobs/${encodeURIComponent(job)}/trace`, maxBytes: MOST_LOG }),
  rerun: async (client, project, id) =>
    void (await client.text({ method: 'POST', path: `${pipelineAt(project, id)}/retry` })),
  cancel: async (client, project, id) =>
    void (await client.text({ method: 'POST', path: `${pipelineAt(project, id)}/cancel` })),
  hooks: async (client, project) =>
    givenList(await client.json({ path: `${projectAt(project)}/hooks?per_page=${PAGE}` })).map(hook => ({
      id: givenCount(hook.id, Number.MAX_SAFE_INTEGER) ?? 0,
      url: givenText(hook.url, 2000),
    })),
  putHook: async (client, project, { id, url, secret }) => {
    const path = `${projectAt(project)}/hooks`
    const events = { pipeline_events: true, push_events: false, enable_ssl_verification: true }
    const body = { url, token: secret, ...events }
    const made = givenObject(
      await client.json(
        id === undefined ? { method: 'POST', path, body } : { method: 'PUT', path: `${path}/${id}`, body },
      ),
    )
    return givenCount(made.id, Number.MAX_SAFE_INTEGER) ?? refuse('dependency', `${client.site.host} made no webhook`)
  },
  reported: (event, body) => {
    if (event !== 'Pipeline Hook' || body.object_kind !== 'pipeline') return undefined
    const run = pipelineOf(givenObject(body.object_attributes), givenObject(body.user))
    if (!run || run.status === 'running') return undefined
    return { project: givenText(givenObject(body.project).path_with_namespace), run }
  },
}
