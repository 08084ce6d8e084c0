import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { GateVerdict } from '../../../plugins/workflows/contract.js'
import { judgeOf, stepOf, workflowOf, workflowsDaemon } from '../../plugins/workflows/support.js'
import { inGit, type Support } from '../../support/daemon.js'
import { commitAll } from '../../plugins/git/support.js'
import { exactly } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'

t.setTimeout(300_000)

const FILE = '.sandbox/config/workflows.json'
const STOPS = 'verdict done it is judged\n| {"data": {"verdict": "stop"}}'
const GOES = STOPS.replace('stop', 'go')
const GATE = { step: 'j', field: 'verdict', pass: ['go'] }

interface Stored {
  [id: string]: { gate: { [field: string]: unknown }; steps: { [field: string]: unknown }[] } & {
    [field: string]: unknown
  }
}

/** A design whose gate stops, and how to ask it. */
const gated = async (daemon: Support, id: string) => {
  const { client } = daemon
  const workflow = workflowOf(id, [stepOf('a', 'say made'), judgeOf('j', STOPS, { needs: ['a'] })], { gate: GATE })
  await client.call('POST /workflows', { workflow, create: true })
  const { url, token } = await client.call('GET /workflows/{id}/gate', { id })
  const ask = async (): Promise<Partial<GateVerdict> & { status: number; message?: string }> => {
    const answer = await fetch(`${url}?wait=60`, { method: 'POST', headers: { authorization: `Bearer ${token}` } })
    return { ...((await answer.json()) as GateVerdict), status: answer.status }
  }
  return { ask, url, token }
}

/** Every part of a design that decides what its gate says, or what it runs. */
const CHANGES: { readonly [what: string]: (design: Stored[string]) => void } = {
  'other values pass': ({ gate }) => (gate['pass'] = ['go', 'stop']),
  'another field counts': ({ gate, steps }) => {
    gate['field'] = 'other'
    ;(steps[1]!['output'] as { fields: object[] }).fields = [
      { name: 'other', type: 'string', description: 'd', required: true },
    ]
  },
  'another step judges': ({ gate, steps }) => {
    steps[0]!['output'] = steps[1]!['output']
    gate['step'] = 'a'
  },
  'its step is told something else': ({ steps }) => (steps[1]!['prompt'] = GOES),
  'its step has another agent': ({ steps }) => (steps[1]!['agent'] = 'agent/other'),
  'its step has another goal': ({ steps }) => (steps[1]!['goal'] = 'To say go.'),
  'a step before it is told something else': ({ steps }) => (steps[0]!['prompt'] = 'write verdict.txt\n| go'),
  'a step less': design => {
    design.steps.shift()
    design.steps[0]!['needs'] = []
  },
  'a check that is a command': ({ steps }) =>
    (steps[1]!['checks'] = [{ kind: 'command', label: 'c', command: 'touch ran' }]),
  'more runs a day': ({ gate }) => (gate['dailyMax'] = 10_000),
}

/** How a change of the file comes to the workspace. */
const WAYS: { readonly [way: string]: (daemon: Support, text: string) => Promise<void> | void } = {
  'written there': ({ workspace }, text) => writeFileSync(join(workspace, FILE), text),
  'brought by git': ({ workspace }, text) => {
    commitAll(workspace, 'as it was')
    inGit(workspace, 'checkout', '-q', '-b', 'theirs')
    writeFileSync(join(workspace, FILE), text)
    commitAll(workspace, 'theirs')
    inGit(workspace, 'checkout', '-q', 'main')
    inGit(workspace, 'merge', '-q', 'theirs')
    inGit(workspace, 'branch', '-q', '-D', 'theirs')
  },
}

t.test('a gate that somebody changed without saving it starts nothing and passes nothing', async t => {
  const daemon = await workflowsDaemon(t)
  const { workspace, client } = daemon
  const { ask } = await gated(daemon, 'release')
  t.match(await ask(), { status: 200, outcome: 'fail', value: 'stop' })
  const saved = readFileSync(join(workspace, FILE), 'utf8')
  const runs = async () => (await client.call('GET /workflows/runs', { workflow: 'release' })).runs.length
  const before = await runs()
  for (const [way, bring] of Object.entries(WAYS))
    for (const [what, change] of Object.entries(CHANGES)) {
      const all = JSON.parse(saved) as Stored
      change(all['release']!)
      await bring(daemon, `${JSON.stringify(all, null, 2)}\n`)
      const { status, outcome, message } = await ask()
      t.same([status, outcome], [409, undefined], `${what}, ${way}: ${message}`)
      t.equal(await runs(), before, `${what}, ${way}: nothing was started`)
      const problems = await client.call('GET /system/manifest-problems')
      t.match(
        problems.find(({ path }) => path === FILE)?.problems,
        exactly({ kind: 'unaccepted' }),
        `${what}, ${way}: it is said`,
      )
      writeFileSync(join(workspace, FILE), saved)
    }
  t.match(await ask(), { status: 200, outcome: 'fail', value: 'stop' }, 'as it was saved it judges again')
})

t.test('what a gate says is of the design with which its run began, and of no file that a turn leaves', async t => {
  const daemon = await workflowsDaemon(t)
  const { workspace, client } = daemon
  const { ask, token } = await gated(daemon, 'release')
  await runTurn(client, 'other', `write verdict.json\n| {"data": {"verdict": "go"}}`, { agent: 'script' })
  const asked = ask()
  for (;;) {
    const [run] = (await client.call('GET /workflows/runs', { workflow: 'release' })).runs
    if (run) break
  }
  const all = JSON.parse(readFileSync(join(workspace, FILE), 'utf8')) as Stored
  all['release']!.gate['pass'] = ['stop']
  writeFileSync(join(workspace, FILE), JSON.stringify(all))
  t.match(await asked, { status: 200, outcome: 'fail', value: 'stop' })
  const frames = await runTurn(
    client,
    'looks',
    'run env; find / -xdev -name "*gate*" -path "*sandbox*" 2>&1 | head -50',
    {
      agent: 'script',
      isolated: true,
    },
  )
  t.notMatch(JSON.stringify(frames), token, 'a turn does not find the token of a gate')
})
