import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { daemonWith, folderOf, inGit, makeWorkspace } from '../../support/daemon.js'
import { runTurn } from '../../support/turns.js'
import { shellTurn, walled } from '../support.js'

const GROUPS = ['system', 'agent', 'agents', 'git']

t.setTimeout(300_000)

t.test('a landing keeps the line ends of each line of a file that mixes them', async t => {
  const base = folderOf(t)
  const [workspace, data] = [join(base, 'w'), join(base, 'data')]
  const lines = (at: number, from = 0) => Array.from({ length: at }, (_, line) => `line ${from + line}`)
  const end = (at: number) => (at % 3 === 0 ? '\n' : '\r\n')
  const mixed = (texts: readonly string[]) => texts.map((text, at) => text + end(at)).join('')
  makeWorkspace(workspace, { '.gitattributes': '*.txt text eol=lf\n', 'plain.bin': 'a\r\nb\n' })
  const files = ['first', 'middle', 'last', 'more', 'fewer', 'moved', 'open']
  for (const name of files) writeFileSync(join(workspace, `${name}.txt`), mixed(lines(12)))
  writeFileSync(join(workspace, 'open.txt'), mixed(lines(12)).slice(0, -2))
  inGit(workspace, 'add', '-A')
  inGit(workspace, 'commit', '-qm', 'mixed')
  const { client } = await daemonWith(t, GROUPS, { workspace, data })
  await shellTurn(
    client,
    'c',
    [
      "sed -i '1s/^/new /' first.txt && sed -i '6s/^/new /' middle.txt && sed -i '12s/^/new /' last.txt",
      "sed -i '5a added' more.txt && echo added >> more.txt && sed -i '4,6d' fewer.txt",
      "mkdir sub && git mv moved.txt sub/moved.txt && sed -i '2s/^/new /' sub/moved.txt",
      "sed -i '12s/$/ new/' open.txt",
      "printf 'c\\r\\nb\\n' > plain.bin",
    ],
    { isolated: true },
  )
  t.match(await client.call('POST /agents/{id}/land', { id: 'c' }), { landed: true })
  const text = (path: string) => readFileSync(join(workspace, path), 'utf8')
  const changed = (at: number, from = lines(12)) => mixed(from.with(at, `new ${from[at]}`))
  t.equal(text('first.txt'), changed(0))
  t.equal(text('middle.txt'), changed(5))
  t.equal(text('last.txt'), changed(11))
  t.equal(text('sub/moved.txt'), changed(1))
  t.equal(text('open.txt'), `${mixed(lines(12)).slice(0, -2)} new`)
  const each = lines(12).map((line, at) => line + end(at))
  t.equal(text('more.txt'), [...each.slice(0, 5), `added${end(5)}`, ...each.slice(5), 'added\r\n'].join(''))
  t.equal(text('fewer.txt'), [...each.slice(0, 3), ...each.slice(6)].join(''))
  t.equal(text('plain.bin'), 'c\r\nb\n', 'without a conversion the file is that of the turn')
})

t.test('the sides of a conflict have the form in which people work with the file', walled(), async t => {
  const base = folderOf(t)
  const [workspace, data] = [join(base, 'w'), join(base, 'data')]
  makeWorkspace(workspace, { '.gitattributes': '*.up filter=up\n' })
  inGit(workspace, 'config', 'filter.up.clean', 'tr A-Z a-z')
  inGit(workspace, 'config', 'filter.up.smudge', 'tr a-z A-Z')
  writeFileSync(join(workspace, 'x.up'), 'ONE\n')
  inGit(workspace, 'add', '-A')
  inGit(workspace, 'commit', '-qm', 'x')
  const { client } = await daemonWith(t, GROUPS, { workspace, data })
  await runTurn(client, 'c', 'run echo AGENT > x.up', { isolated: true })
  writeFileSync(join(workspace, 'x.up'), 'PERSON\n')
  t.match(await client.call('POST /agents/{id}/land', { id: 'c' }), { landed: false })
  const { files } = await client.call('GET /agents/{id}/conflicts', { id: 'c', repo: 'root', path: 'x.up' })
  const { base: one, agent, workspace: mine } = files[0]!
  t.same([one?.text, agent?.text, mine?.text], ['ONE\n', 'AGENT\n', 'PERSON\n'])
  t.match(files[0]?.merged?.text, /PERSON[^]*AGENT/, 'the merge too')
})

t.test('a file that lands under an ignored name is a new file for git, not an invisible one', async t => {
  const base = folderOf(t)
  const [workspace, data] = [join(base, 'w'), join(base, 'data')]
  makeWorkspace(workspace, { '.gitignore': '*.log\nbuild/\n', 'kept.txt': 'a\nb\nc\nd\n', 'a.txt': 'a\n' })
  writeFileSync(join(workspace, '.git/info/exclude'), '*.tmp\n')
  const { client } = await daemonWith(t, GROUPS, { workspace, data })
  const commit = 'git -c user.name=a -c user.email=a@b.c commit -qm forced'
  await shellTurn(
    client,
    'c',
    [
      'mkdir build && echo x > build/x.js && echo y > y.log && echo z > z.tmp',
      `git add -f build y.log z.tmp && ${commit}`,
      'git mv kept.txt kept.log && echo more >> a.txt && echo n > n.log && echo f > f.txt',
    ],
    { isolated: true },
  )
  const landed = await client.call('POST /agents/{id}/land', { id: 'c' })
  t.match(landed, { landed: true })
  t.same(landed.ignored, [{ repo: 'root', paths: ['build/x.js', 'kept.log', 'y.log', 'z.tmp'] }])
  const status = inGit(workspace, 'status', '--porcelain').split('\n').filter(Boolean).sort()
  const expected = [' A build/x.js', ' A y.log', ' A z.tmp', ' M a.txt', ' R kept.txt -> kept.log', '?? f.txt']
  t.same(status, expected.sort())
  const { files } = await client.call('GET /git/{repo}/status', { repo: 'root' })
  t.same(
    files?.toSorted(),
    ['a.txt', 'build/x.js', 'f.txt', 'kept.log', 'kept.txt', 'y.log', 'z.tmp'],
    'the page of git shows them too',
  )
  t.equal(inGit(workspace, 'diff', '--cached', '--name-only'), '', 'nothing is staged')
  inGit(workspace, 'commit', '-qam', 'all of it')
  t.equal(inGit(workspace, 'show', 'HEAD:kept.log'), 'a\nb\nc\nd\n')
  t.match(await client.call('POST /agents/{id}/land', { id: 'c' }), { landed: true })
})
