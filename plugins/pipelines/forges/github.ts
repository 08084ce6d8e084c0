import { refuse } from '../../../sdk/index.js'
import { projectPath } from './client.js'
import { PAGE, type Dialect } from './forge.js'
import { givenCount, givenList, givenObject, givenText } from './given.js'
import { workflowJob, workflowRun } from './workflow-runs.js'

const MOST_LOG = 32 * 1024 * 1024
const CLOUD = 'github.com'

const runsPath = (project: string, id?: number): string =>
  `/repos/${projectPath(project)}/actions/runs${id === undefined ? '' : `/${id}`}`

/** GitHub Actions, of github.com and of servers. */
export const github: Dialect = {
  host: 'github',
  api: site => (site.host === CLOUD ? `https://api.${CLOUD}` : new URL('/api/v3', site).href),
  headers: token => ({
    authorization: `Bearer ${token}`,
    accept: 'application/vnd.github+json',
    'x-github-api-version': '2022-11-28',
  }),
  powers: async () => ({ rerun: true, rerunFailed: true, cancel: true, jobs: true, log: true }),
  runs: async (client, project, page) => {
    const answer = givenObject(await client.json({ path: `${runsPath(project)}?per_page=${PAGE}&page=${page}` }))
    return givenList(answer.workflow_runs).flatMap(run => workflowRun(run) ?? [])
  },
  run: async (client, project, id) =>
    workflowRun(givenObject(await client.json({ path: runsPath(project, id) })))
    ?? refuse('dependency', `${client.site.host} answered no run`),
  jobs: async (client, project, id) => {
    const answer = givenObject(await client.json({ path: `${runsPath(project, id)}/jobs?per_page=${PAGE}` }))
    return givenList(answer.jobs).map(workflowJob)
  },
  log: (client, project, job) =>
    client.text({
      path: `/repos/${projectPath(project)}/actions/jobs/${encodeURIComponent(job)}/logs`,
      maxBytes: MOST_LOG,
    }),
  rerun: async (client, project, id, failedOnly) => {
    const path = `${runsPath(project, id)}/${failedOnly ? 'rerun-failed-jobs' : 'rerun'}`
    await client.text({ method: 'POST', path })
  },
  cancel: async (client, project, id) =>
    void (await client.text({ method: 'POST', path: `${runsPath(project, id)}/cancel` })),
  hooks: async (client, project) =>
    givenList(await client.json({ path: `/repos/${projectPath(project)}/hooks?per_page=${PAGE}` })).map(hook => ({
      id: givenCount(hook.id, Number.MAX_SAFE_INTEGER) ?? 0,
      url: givenText(givenObject(hook.config).url, 2000),
    })),
  putHook: async (client, project, { id, url, secret }) => {
    const path = `/repos/${projectPath(project)}/hooks`
    const config = { url, secret, content_type: 'json', insecure_ssl: '0' }
    const body = { active: true, events: ['workflow_run'], config }
    const made = givenObject(
      await client.json(
        id === undefined
          ? { method: 'POST', path, body: { name: 'web', ...body } }
          : { method: 'PATCH', path: `${path}/${id}`, body },
      ),
    )
    return givenCount(made.id, Number.MAX_SAFE_INTEGER) ?? refuse('dependency', `${client.site.host} made no webhook`)
  },
  reported: (event, body) => {
    if (event !== 'workflow_run' || body.action !== 'completed') return undefined
    const run = workflowRun(givenObject(body.workflow_run))
    return run && { project: givenText(givenObject(body.repository).full_name), run }
  },
}
