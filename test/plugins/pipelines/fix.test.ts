import t from 'tap'
import { PipelineFixes } from '../../../plugins/pipelines/fix/fixes.js'
import { saysElsewhere } from '../../../plugins/pipelines/fix/prompt.js'

t.test('an agent that says in its last line that the fault is elsewhere is not asked again', t => {
  for (const report of ['It is theirs.\nnot here: the runner has no disk left', '**Not here**: x\n\n'])
    t.ok(saysElsewhere(report), report)
  for (const report of ['', 'not here: x\nI went on.', 'It is not here.', 'nothing'])
    t.notOk(saysElsewhere(report), report)
  t.end()
})

t.test('the work that was landed before a failed check is looked for with the eyes of who asks', async t => {
  const context = { caller: { kind: 'session', actor: 'ann', role: 'collaborator', areas: ['web'] } }
  const made: (readonly [call: string, as: unknown])[] = []
  const answers: { readonly [call: string]: object } = {
    'GET /git/{repo}/log': { commits: [{}] },
    'GET /git/changes': { repos: [{ repo: 'web', origins: { 'a.txt': ['c'] } }] },
    'agent.conversation': { conversation: { title: 'Theirs', repos: [{ repo: 'web', landedTip: 'f'.repeat(40) }] } },
  }
  const call = async (name: string, _input: object, { as }: { as?: unknown } = {}) => {
    made.push([name, as])
    return answers[name] ?? {}
  }
  const fixes = new PipelineFixes({
    host: { call, serves: async () => true },
    checks: { noteFix: async () => {} },
    results: {},
    jobs: { failedLogs: async () => [] },
  } as never)
  const check = { repo: 'web', branch: 'main', sha: 'a'.repeat(40), status: 'failed', rules: [], startedAt: 1 }
  const found = { kind: 'check', check: { number: 1, repos: ['web'], trigger: 'push', ...check } }
  await fixes.start(found as never, { repo: 'web', runId: 1 }, context as never)
  t.equal(made.find(([name]) => name === 'GET /git/changes')?.[1], context)
  t.equal(made.find(([name]) => name === 'agent.start')?.[1], context)
})
