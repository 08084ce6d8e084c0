import t, { type Test } from 'tap'
import { daemonWith, inGit } from '../../support/daemon.js'
import { runTurn } from '../../support/turns.js'
import { sandbox } from './cli-process.js'

/** A daemon, and the command line with a token for it. */
const commandLine = async (t: Test, options: Parameters<typeof daemonWith>[2] = {}) => {
  const daemon = await daemonWith(t, ['agent', 'agents'], options)
  const { token } = await daemon.token('land')
  const run = (...args: string[]) => sandbox(args, { env: { SANDBOX_URL: daemon.url, SANDBOX_TOKEN: token } })
  return { daemon, run }
}

t.test('a transcript has the turn that waits for an answer, and says how to answer', async t => {
  const { daemon, run } = await commandLine(t)
  t.equal((await run('ci-step', 'say before', '--conversation', 'c-1')).code, 0)
  t.equal((await run('ci-step', 'say so far\nask Which colour?\n| Red\n| Blue', '--conversation', 'c-1')).code, 4)
  const { code, out } = await run('transcript', 'c-1')
  t.equal(code, 0)
  t.match(out, /^0 +.*say before.*\n1 +agent.*before\n/s, 'what was settled')
  t.match(out, /\n- +\S.*\n +say so far\n.*- +agent\n.*so far\n.*The agent asks: Which colour\?.*1\. Red/s)
  t.match(out, /it waits for an answer: sandbox answer c-1 …\n$/)
  await daemon.client.call('POST /agent/stop', { conversationId: 'c-1' })
  const over = await run('transcript', 'c-1')
  t.notMatch(over.out, 'it waits')
})

t.test('the newest conversation is the one that changed last, also while an older one waits', async t => {
  const { run } = await commandLine(t)
  t.equal((await run('ci-step', 'ask Which colour?\n| Red', '--conversation', 'old')).code, 4)
  t.equal((await run('ci-step', 'say done', '--conversation', 'new')).code, 0)
  for (const verb of ['transcript', 'diff', 'queue'])
    t.match(await run(verb), { err: 'conversation new, the newest one\n' }, verb)
  t.match(await run('stop'), { code: 0, err: 'conversation old, the newest one at work\n' })
})

/** Names as printf makes them: those that git quotes, and two that it does not. */
const NAMES = ['we"ird\\\\name', 'tab\\there', 'line\\nend', 'ünï', '-dash']
/** A name that no path of the workspace may begin with. */
const REFUSED = '\\\\\\\\server'

t.test('a diff shows every file, whatever its name, and names the one that it cannot show', async t => {
  const { daemon, run } = await commandLine(t)
  const all = [REFUSED, ...NAMES]
  const script = all.map((name, at) => `run printf 'content ${at}' > "./$(printf -- '${name}_')"`)
  const frames = await runTurn(daemon.client, 'c-1', [...script, 'say done'].join('\n'), { isolated: true })
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  const { code, out } = await run('diff', 'c-1')
  t.equal(code, 0)
  for (const [at, name] of all.entries()) if (at > 0) t.match(out, `+content ${at}`, name)
  t.equal(out.match(/cannot be shown: /g)?.length, 1)
})

t.test('without a commit a turn is told what is true, and works with what it says', async t => {
  const { daemon, run } = await commandLine(t, { git: false })
  inGit(daemon.workspace, 'init', '-q')
  const refused = await run('run', 'say x')
  t.match(refused, {
    err: /^sandbox: a private copy begins from a commit, and no git repository of the workspace has one/,
  })
  t.match(refused.err, /make it \(git commit --allow-empty -m first\), or give --shared\n$/)
  t.match(await run('run', 'say x', '--shared'), { code: 0 })
})
