import type { Examples } from '../../sdk/contract.js'
import type { CiRepo, PipelineJob, PipelineRun, PipelinesCalls } from './contract.js'

const AT = 1_760_000_000_000
const SHA = '9f1c2d3e4b5a69788796a5b4c3d2e1f001234567'
const REPO: CiRepo = {
  ...{ repo: 'shop', host: 'github', project: 'acme/shop', url: 'https://github.com/acme/shop', account: 'github' },
  ...{ delivery: 'hook', polledAt: AT + 100_000 },
  can: { rerun: true, rerunFailed: true, cancel: true, jobs: true, log: true },
}
const RUN: PipelineRun = {
  ...{ repo: 'shop', host: 'github', project: 'acme/shop', runId: 17_209_114_882, number: 412, attempt: 1 },
  ...{ title: 'Round totals', workflow: 'Tests', authorName: 'ada', trigger: 'push', branch: 'main', sha: SHA },
  ...{ status: 'failed', url: 'https://github.com/acme/shop/actions/runs/17209114882', createdAt: AT },
  ...{ finishedAt: AT + 95_000, durationSeconds: 95, failedJobs: ['test'] },
}
const JOB: PipelineJob = {
  ...{ id: '48120339912', name: 'test', status: 'failed', needs: ['build'], startedAt: AT + 40_000 },
  ...{ finishedAt: AT + 95_000, durationSeconds: 55, log: 'available' },
  webUrl: 'https://github.com/acme/shop/actions/runs/17209114882/job/48120339912',
}
const NAMED = { repo: 'shop', runId: RUN.runId }
const URL = 'https://sandbox.example.org/ci/webhook/github'
const HOOK = { url: URL, secret: 'n0tAR3alS3cr3t-n0tAR3alS3cr3t-n0tAR3alS3cr', createdAt: AT }

/** One use of each call. */
export const examples = (): Examples<PipelinesCalls> => ({
  'GET /ci/runs': {
    input: { branch: 'main', status: 'failed', limit: 1 },
    output: { repos: [REPO], runs: [RUN], seenAt: AT - 1000, next: AT },
  },
  'POST /ci/runs/jobs': { input: NAMED, output: { jobs: [JOB] } },
  'POST /ci/runs/log': {
    input: { ...NAMED, job: JOB.id, find: 'failure' },
    output: {
      ...{ job: JOB.id, text: 'not ok 3 - totals are rounded\n', offset: 18_204, sizeBytes: 19_900, truncated: true },
    },
  },
  'POST /ci/runs/rerun': { input: { ...NAMED, failedOnly: true }, output: { ok: true } },
  'POST /ci/runs/cancel': { input: NAMED, output: { ok: true } },
  'POST /ci/fix': {
    input: { ...NAMED, note: 'It began with the new currency.' },
    output: { conversationId: 'ci-fix-5d41402abc4b2a76b971', run: 'r-5d41402abc4b2a76b971' },
  },
  'POST /ci/seen': { output: { seenAt: AT + 200_000 } },
  'POST /ci/webhook/{host}': {
    input: {
      ...{ host: 'github', 'x-github-event': 'ping', 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` },
      body: Buffer.from('{"zen":"Keep it logically awesome."}').toString('base64'),
    },
    output: { ok: true, ignored: true },
  },
  'GET /ci/webhook/{host}': { input: { host: 'github' }, output: { ...HOOK, lastUsedAt: AT + 95_500 } },
  'POST /ci/webhook/{host}/rotate': { input: { host: 'github' }, output: HOOK },
  'GET /prepush/state': {
    output: {
      ...{ status: 'failed', command: 'npm test', ruleId: 'tests', runId: 8_000_000_000_000_007, startedAt: AT },
      ...{ finishedAt: AT + 4_000, exitCode: 1, session: 'job-checks', output: 'not ok 3 - totals are rounded' },
    },
  },
  'POST /prepush/run': { output: { ok: true } },
  'POST /prepush/cancel': { output: { ok: true } },
})
