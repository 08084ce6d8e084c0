import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { ForgeHost } from '../../../plugins/pipelines/contract.js'
import { recording, tlsServer, type Recorded } from '../../support/servers/tls-server.js'

/** What a project of the forge is named. */
export const PROJECT = 'acme/shop'
/** The credential that it takes. */
export const TOKEN = 'forge-token-0123456789'

type Word = 'running' | 'success' | 'failed' | 'canceled' | 'skipped'

/** A run as the forge keeps it. */
export interface KeptRun {
  readonly id: number
  attempt: number
  readonly branch: string
  readonly sha: string
  status: Word
  readonly createdAt: number
  updatedAt: number
}
interface KeptJob {
  readonly id: number
  readonly name: string
  readonly status: Word
  readonly begins: number
  readonly log: string
}
/** What is refused, with which headers. */
export interface Refusing {
  readonly status: number
  readonly headers?: { readonly [name: string]: string }
}

const iso = (at: number): string => new Date(at).toISOString()
const conclusion = (status: Word): string =>
  ({ running: '', success: 'success', failed: 'failure', canceled: 'cancelled', skipped: 'skipped' })[status]

const SWAGGER = {
  basePath: '/api/v1',
  paths: {
    '/repos/{owner}/{repo}/actions/runs': { get: {} },
    '/repos/{owner}/{repo}/actions/runs/{run}': { get: {} },
    '/repos/{owner}/{repo}/actions/runs/{run}/jobs': { get: {} },
    '/repos/{owner}/{repo}/actions/jobs/{job_id}/logs': { get: {} },
  },
}

/** A forge with one project, in the form of one host, that listens with TLS on one address of this machine. */
export class TestForge {
  readonly runs: KeptRun[] = []
  readonly jobs: KeptJob[] = []
  readonly hooks: { id: number; config: { [field: string]: string } }[] = []
  refusing: Refusing | undefined
  /** Whether its version can run things again and stop them. */
  isNew = true
  requests: Recorded[] = []
  port = 0
  scheme = 'https'
  readonly #clock = Date.now() - 1_000_000

  constructor(
    readonly host: ForgeHost,
    readonly address: string,
  ) {}

  /** Listens; `plain`: without TLS, for programs that trust no certificate of a test. */
  async listen(t: Test, plain = false): Promise<this> {
    const answering = (asked: Recorded, answer: ServerResponse) => {
      const [status, value, headers = {}] = this.#answerOf(asked)
      const isText = typeof value === 'string'
      answer.writeHead(status, { 'content-type': isText ? 'text/plain' : 'application/json', ...headers })
      answer.end(isText ? value : JSON.stringify(value ?? {}))
    }
    if (!plain) return Object.assign(this, await tlsServer(t, answering, this.address))
    const server = createServer((asked, answer) => void recording(this.requests, answering)(asked, answer))
    server.listen(0, this.address)
    await once(server, 'listening')
    t.teardown(() => server.close())
    const { port } = server.address() as AddressInfo
    return Object.assign(this, { port, scheme: 'http' })
  }

  /** The settings of a connection to it. */
  get config(): { [field: string]: string } {
    const at = `${this.address}:${this.port}`
    const isNamed = this.host === 'github' || this.host === 'gitlab'
    return { provider: this.host, ...(isNamed ? { host: at } : { url: `${this.scheme}://${at}` }) }
  }

  /** Makes a run; each one is newer than those before. */
  add(status: Word, { branch = 'main', sha = 'a'.repeat(40) } = {}): KeptRun {
    const at = this.#clock + this.runs.length * 60_000
    const run: KeptRun = {
      id: 101 + this.runs.length,
      attempt: 1,
      branch,
      sha,
      status,
      createdAt: at,
      updatedAt: at + 5000,
    }
    this.runs.push(run)
    return run
  }

  job(id: number, name: string, status: Word, log: string, begins = this.#clock + id): void {
    this.jobs.push({ id, name, status, begins, log })
  }

  /** A run as the forge writes it. */
  written(run: KeptRun): { [field: string]: unknown } {
    const { id, attempt, branch, sha, status, createdAt, updatedAt } = run
    const url = `${this.scheme}://${this.address}:${this.port}/${PROJECT}/runs/${id}`
    const isOver = status !== 'running'
    if (this.host === 'gitlab')
      return {
        ...{ id, iid: id - 100, ref: branch, sha, status, source: 'push', web_url: url, name: 'Round totals' },
        ...{ created_at: iso(createdAt), updated_at: iso(updatedAt) },
      }
    if (this.host === 'forgejo')
      return {
        ...{ id, index_in_repo: id - 100, prettyref: branch, commit_sha: sha, title: 'Round totals' },
        ...{ status: isOver ? conclusion(status) : 'running', workflow_id: 'ci.yml', html_url: url, event: 'push' },
        ...{ created: iso(createdAt), started: iso(createdAt), updated: iso(updatedAt) },
        ...{ stopped: isOver ? iso(updatedAt) : '1970-01-01T00:00:00Z', trigger_user: { login: 'ada' } },
        repository: { full_name: PROJECT },
      }
    return {
      ...{ id, run_number: id - 100, run_attempt: attempt, head_branch: branch, head_sha: sha, html_url: url },
      ...{ status: isOver ? 'completed' : 'in_progress', conclusion: conclusion(status), event: 'push' },
      ...{ display_title: 'Round totals', name: 'Tests', path: '.github/workflows/ci.yml', actor: { login: 'ada' } },
      ...(this.host === 'github'
        ? { created_at: iso(createdAt), updated_at: iso(updatedAt), run_started_at: iso(createdAt) }
        : { started_at: iso(createdAt), completed_at: iso(updatedAt) }),
    }
  }

  #job({ id, name, status, begins }: KeptJob): object {
    const times = { started_at: iso(begins), ...(status !== 'running' && { finished_at: iso(begins + 3000) }) }
    if (this.host === 'gitlab') return { id, name, status, stage: 'test', ...times }
    const isOver = status !== 'running'
    return {
      ...{ id, name, status: isOver ? 'completed' : 'in_progress', conclusion: conclusion(status) },
      ...{ started_at: iso(begins), completed_at: isOver ? iso(begins + 3000) : null },
    }
  }

  #answerOf({ method, url, headers, body }: Recorded): [status: number, value?: unknown, headers?: object] {
    const { pathname, searchParams } = new URL(url, 'https://forge')
    if (pathname === '/swagger.v1.json') return [200, this.#described()]
    if (headers.authorization?.split(' ')[1] !== TOKEN) return [401, { message: 'Bad credentials' }]
    if (this.refusing) return [this.refusing.status, { message: 'not now' }, this.refusing.headers]
    const isGitlab = this.host === 'gitlab'
    const project = isGitlab ? `/api/v4/projects/${encodeURIComponent(PROJECT)}` : `/repos/${PROJECT}`
    const api = isGitlab ? '' : this.host === 'github' ? '/api/v3' : '/api/v1'
    if (!pathname.startsWith(api + project)) return [404, { message: 'Not Found' }]
    const path = pathname
      .slice((api + project).length)
      .replace(/^\/actions/, '')
      .replace('/pipelines', '/runs')
    if (path.startsWith('/hooks')) return this.#hook(method, path, body)
    if (path === '/runs') return this.#page(searchParams)
    const [, , id = '', what = ''] = path.split('/')
    if (path.startsWith('/jobs/')) {
      const job = this.jobs.find(each => String(each.id) === id)
      return job ? [200, job.log] : [404, { message: 'Not Found' }]
    }
    const run = this.runs.find(each => String(each.id) === id)
    if (!run) return [404, { message: 'Not Found' }]
    if (method === 'GET') {
      if (what === '') return [200, this.written(run)]
      const jobs = this.jobs.map(each => this.#job(each))
      return [200, isGitlab ? jobs : { total_count: jobs.length, jobs }]
    }
    run.updatedAt += 60_000
    run.status = what === 'cancel' ? 'canceled' : 'running'
    if (what !== 'cancel') run.attempt += 1
    return [what === 'cancel' ? 202 : 201, {}]
  }

  #page(asked: URLSearchParams): [status: number, value: unknown] {
    const size = Math.min(
      Number(asked.get('per_page') ?? asked.get('limit')),
      this.host === 'github' || this.host === 'gitlab' ? 100 : 50,
    )
    const from = (Number(asked.get('page')) - 1) * size
    const newest = this.runs
      .toReversed()
      .slice(from, from + size)
      .map(run => this.written(run))
    return [200, this.host === 'gitlab' ? newest : { total_count: this.runs.length, workflow_runs: newest }]
  }

  #hook(method: string, path: string, body: string): [status: number, value: unknown] {
    if (method === 'GET') return [200, this.hooks.map(each => ({ ...each, ...each.config }))]
    const given = JSON.parse(body) as { config?: { [field: string]: string } }
    const config = given.config ?? (given as { [field: string]: string })
    const id = Number(path.split('/')[2] ?? this.hooks.length + 1)
    const known = this.hooks.find(each => each.id === id)
    if (known) known.config = config
    else this.hooks.push({ id, config })
    return [known ? 200 : 201, { id }]
  }

  #described(): object {
    if (!this.isNew) return SWAGGER
    const posts = ['rerun', 'rerun-failed-jobs', 'cancel'].map(what => [
      `/repos/{owner}/{repo}/actions/runs/{run_id}/${what}`,
      { post: {} },
    ])
    return { ...SWAGGER, paths: { ...SWAGGER.paths, ...Object.fromEntries(posts) } }
  }
}
