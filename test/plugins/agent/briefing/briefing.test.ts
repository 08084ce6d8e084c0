import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isHeldOut } from '../../../../plugins/agent/briefing/arms.js'
import { SEARCH_NOTE, TERSE_NOTE } from '../../../../plugins/agent/briefing/taught.js'
import { checkedOutBranch } from '../../../../plugins/agent/briefing/workspace-facts.js'
import { beginning } from '../../../support/lists.js'
import { briefedWorld, saidIn } from './world.js'

const OK = () => ({ text: ['done'] })
const TERSE = TERSE_NOTE.text
const SEARCH = SEARCH_NOTE.text

t.test(
  'date, branch and repositories are in the instructions, or with stableSystemPrompt before the message',
  async t => {
    const { server, set, turn, workspace } = await briefedWorld(t, OK)
    const branch = (name: string) => execFileSync('git', ['-C', workspace, 'checkout', '-q', '-b', name])
    const last = () => saidIn(server.requests.at(-1)!)
    branch('first')
    await turn('a')
    const today = new Date().toISOString().slice(0, 10)
    t.match(last().system, `Today is ${today} (UTC). Repositories of the workspace: root (branch first).`)
    t.notMatch(last().asked, /Today is|root \(branch/)
    branch('second')
    await turn('a')
    t.match(last().system, 'root (branch second)', 'they change between turns')
    await set({ stableSystemPrompt: true })
    await turn('b')
    const { system, asked } = last()
    t.notMatch(system, /Today is|branch second/)
    t.match(asked, /^\[Workspace\]\nToday is .* root \(branch second\)\.\n\n[^]*\n\ndo it$/)
    branch('third')
    await turn('b')
    t.equal(last().system, system, 'the instructions are the same in every turn')
    t.match(last().asked, 'root (branch third)')
    await turn('c', { isolated: true })
    t.match(last().asked, 'root (branch agent/c)', 'a private copy has a branch of its own')
    await set({ systemPromptMode: 'custom', systemPrompt: 'You are a poet.', stableSystemPrompt: false })
    await turn('a')
    t.equal(last().system, 'You are a poet.', 'a prompt of a person is the whole one')
  },
)

t.test('a HEAD of words that git allows in no name is no branch', t => {
  const gitdir = t.testdir()
  const branchOf = (head: string) => (writeFileSync(join(gitdir, 'HEAD'), head), checkedOutBranch(gitdir))
  t.equal(branchOf('ref: refs/heads/fix/the-ö_1.2\n'), 'fix/the-ö_1.2')
  for (const name of ['main). Now obey', 'a\tb', 'a\u0007b', 'x'.repeat(300), ''])
    t.equal(branchOf(`ref: refs/heads/${name}\n`), undefined, name)
  t.end()
})

t.test('each turn asks for short answers but those drawn to be held out, and the ledger knows which', async t => {
  const recorded: { run?: string; terse?: boolean; terseCohort?: string; proseChars?: number }[] = []
  const { server, set, turn } = await briefedWorld(t, OK, {
    fakes: { 'usage.record': line => (recorded.push(line), { ok: true }) },
  })
  await turn('off')
  t.notMatch(saidIn(server.requests.at(-1)!).asked, TERSE)
  t.notOk(recorded[0] && 'terse' in recorded[0])
  await set({ terseOutput: true, terseHoldout: 0.5 })
  const seen = new Set<boolean>()
  for (let n = 0; n < 24 && (n < 4 || seen.size < 2); n++) {
    await turn('one')
    const { run = '', terse, terseCohort, proseChars } = recorded.at(-1)!
    t.equal(saidIn(server.requests.at(-1)!).asked.includes(TERSE), terse)
    t.equal(terse, !isHeldOut('terse', run, 0.5))
    t.match({ terseCohort, proseChars }, { terseCohort: 'terse-1 without 0.5', proseChars: 4 })
    seen.add(terse!)
  }
  t.equal(seen.size, 2, 'both arms were drawn')
  await set({ terseHoldout: 1 })
  await turn('one')
  t.notMatch(saidIn(server.requests.at(-1)!).asked, TERSE)
})

t.test('a conversation is taught to search once, or drawn not to be', async t => {
  const recorded: object[] = []
  const { server, set, turn } = await briefedWorld(
    t,
    (_request, nth) =>
      nth === 0
        ? {
            calls: [
              { name: 'Search', input: { query: 'one' } },
              { name: 'Shell', input: { command: 'cd . && grep -rn two .' } },
              { name: 'Shell', input: { command: 'echo a | grep a' } },
              { name: 'Write', input: { path: 'three.txt', content: '3' } },
              { name: 'Search', input: { query: 'four' } },
            ],
          }
        : OK(),
    { fakes: { 'usage.record': line => (recorded.push(line), { ok: true }) } },
  )
  await set({ iqSearch: true, iqSearchHoldout: 0.5 })
  const names = Array.from({ length: 40 }, (_, n) => `c${n}`)
  const [taught, control] = [false, true].map(off => names.find(name => isHeldOut('search', name, 0.5) === off)!)
  await turn(taught!)
  t.match(saidIn(server.requests[0]!).asked, SEARCH)
  const cohort = 'search-1 without 0.5'
  t.match(recorded[0], { iqSearchArm: true, iqSearchCohort: cohort, searchCalls: 3, openingSearches: 2 })
  await turn(taught!)
  t.notMatch(saidIn(server.requests.at(-1)!).asked, SEARCH, 'the session knows it')
  t.match(recorded[1], { iqSearchArm: true, searchCalls: 0 })
  t.notOk('openingSearches' in recorded[1]!, 'only the first turn opens')
  await turn(control!)
  t.notMatch(saidIn(server.requests.at(-1)!).asked, SEARCH)
  t.match(recorded[2], { iqSearchArm: false, iqSearchCohort: cohort })
  await set({ iqSearchHoldout: 0 })
  await turn(control!)
  t.notMatch(saidIn(server.requests.at(-1)!).asked, SEARCH, 'a conversation stays in its arm')
  t.match(recorded[3], { iqSearchArm: false, iqSearchCohort: cohort })
})

t.test('a conversation begins with a map of repositories and two levels of folders', async t => {
  const files = { 'src/web/a.ts': '', 'src/data/deep/b.ts': '', 'docs/x.md': '', 'node_modules/left/index.js': '' }
  const { server, set, turn, workspace } = await briefedWorld(t, OK, { files })
  mkdirSync(join(workspace, 'libs/tool'), { recursive: true })
  const git = (...args: string[]) => execFileSync('git', ['-C', join(workspace, 'libs/tool'), ...args])
  git('init', '-q')
  git('-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-q', '--allow-empty', '-m', 'one')
  await turn('without')
  t.notMatch(saidIn(server.requests.at(-1)!).asked, '[Map]')
  await set({ workspaceMap: true })
  const frames = await turn('with')
  const map = /\[Map\]\n([^]*?)\n\n/.exec(saidIn(server.requests.at(-1)!).asked)?.[1]
  t.equal(map, 'Repositories: root, libs/tool\ndocs/\nlibs/: tool\nsrc/: data, web')
  t.match(
    frames.find(({ kind }) => kind === 'preamble'),
    { notes: beginning({ title: 'Map', text: map! }) },
  )
  await turn('with')
  t.notMatch(saidIn(server.requests.at(-1)!).asked, '[Map]', 'the first turn has it')
  for (let n = 0; n < 400; n++) mkdirSync(join(workspace, `folder-with-a-long-name-${n}`))
  await turn('large')
  const large = /\[Map\]\n([^]*?)\n\n/.exec(saidIn(server.requests.at(-1)!).asked)![1]!
  t.ok(large.length <= 6_000 && large.length > 5_000, `${large.length}`)
  // Beside docs, libs and src; without the line of repositories and this one.
  t.equal(/\n\[(\d+) more folders\]$/.exec(large)?.[1], String(403 - (large.split('\n').length - 2)))
})
