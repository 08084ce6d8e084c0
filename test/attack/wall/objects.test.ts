import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { inGit, makeWorkspace } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'
import { placeWith, stateOf } from '../work/git-place.js'
import { BYTES } from './objects-attempts.js'
import { bytesOf, runs, shellTurn, walled } from '../support.js'

const MALFORMED =
  `b=$(echo x | git hash-object -w --stdin); { printf "100644 .git\\0"; ${BYTES} $b; } > /tmp/t; `
  + 'git update-ref refs/heads/agent/c-1 $(git commit-tree -m x -p HEAD $(git hash-object -t tree -w --literally '
  + '/tmp/t)); rm -f /tmp/t; git reset -q'

t.test(
  'a malformed commit is reported in the run, is not imported, and cannot land, be archived or change the diffs of '
    + 'others',
  walled(),
  async t => {
    const here = await placeWith(t)
    const { client, workspace, common } = here
    await shellTurn(client, 'victim', ['echo theirs > theirs.txt'], { isolated: true })
    await shellTurn(client, 'c-1', ['echo sound > sound.txt'], { isolated: true })
    const others = () => client.call('GET /agents/{id}/diff', { id: 'victim' })
    const [state, before, objects, diff] = [
      stateOf(here),
      inGit(workspace, 'rev-parse', 'agent/c-1'),
      bytesOf(join(common, 'objects')),
      await others(),
    ]
    const frames = await runTurn(client, 'c-1', runs(MALFORMED))
    t.match(
      frames.find(({ kind }) => kind === 'notice'),
      {
        level: 'warning',
        source: 'copies',
        text: /does not pass git's checks and stays out of the repository \(.*\.git/,
      },
    )
    t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
    t.match(await refusalOf(() => client.call('POST /agents/{id}/land', { id: 'c-1' })), {
      status: 409,
      message: /does not pass git's checks .*: have the agent remove that commit, then land again/,
    })
    t.match(await client.call('POST /agents/archive', { ids: ['c-1'] }), { failed: exactly({ id: 'c-1' }) })
    await client.call('GET /agents')
    await client.call('GET /agents/{id}/diff', { id: 'c-1' })
    t.same(stateOf(here), state)
    t.same(bytesOf(join(common, 'objects')), objects)
    t.equal(inGit(workspace, 'rev-parse', 'agent/c-1'), before)
    t.equal(inGit(workspace, 'fsck', '--strict', '--no-dangling'), '')
    t.same(await others(), diff)
    await shellTurn(client, 'c-1', ['git reset -q main && echo two >> sound.txt'])
    t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
    t.equal(readFileSync(join(workspace, 'sound.txt'), 'utf8'), 'sound\ntwo\n', 'valid work lands afterwards')
  },
)

t.test(
  'before a turn has settled the repository has none of its objects, and its diff is read from its own folders',
  walled(),
  async t => {
    const here = await placeWith(t)
    const { client, common, workspace } = here
    await runTurn(client, 'c-1', 'say here', { isolated: true })
    const before = bytesOf(common)
    const prompt = [
      runs(
        'echo committed > committed.txt && git add -A && git commit -qm own && echo staged > staged.txt && git '
          + 'add staged.txt && echo loose > loose.txt',
      ),
      'ask On?\n| yes',
    ].join('\n')
    await client.call('POST /agent', { conversationId: 'c-1', prompt })
    const asked = async (): Promise<string> => {
      for (;;) {
        const { cards } = (await client.call('GET /agents/{id}', { id: 'c-1' })) as { cards?: { requestId: string }[] }
        if (cards?.[0]) return cards[0].requestId
        await new Promise(resolve => setTimeout(resolve, 20))
      }
    }
    const requestId = await asked().catch(() => '')
    const { repos } = await client.call('GET /agents/{id}/diff', { id: 'c-1' })
    t.same(repos[0]?.changes.map(({ path }) => path).sort(), ['committed.txt', 'loose.txt', 'staged.txt'])
    t.same(bytesOf(common), before)
    await client.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'On?': 'yes' } })
    await runTurn(client, 'c-1', 'say done')
    t.equal(
      inGit(workspace, 'show', 'agent/c-1:committed.txt', 'agent/c-1:staged.txt', 'agent/c-1:loose.txt'),
      'committed\nstaged\nloose\n',
    )
    t.match(inGit(workspace, 'reflog', 'agent/c-1'), /commit: own/, 'its reflog is imported')
    t.equal(inGit(workspace, 'fsck', '--strict', '--no-dangling'), '')
  },
)

t.test(
  'with its own links and alternates a turn reads no object of another repository into a diff or the ' + 'repository',
  walled(),
  async t => {
    const here = await placeWith(t)
    const { client, common, workspace, data, elsewhere } = here
    const folder = join(elsewhere, 'private')
    makeWorkspace(folder, { 'secret.txt': 'the secret of another repository\n' })
    const id = inGit(folder, 'rev-parse', 'HEAD:secret.txt').trim()
    const there = join(folder, '.git/objects')
    await shellTurn(client, 'c-1', ['echo a > a.txt'], { isolated: true })
    const objects = bytesOf(join(common, 'objects'))
    const own = '"$(git rev-parse --git-dir)/objects"'
    const steps = [
      `rm -rf ${own}/${id.slice(0, 2)} && ln -s ${there}/${id.slice(0, 2)} ${own}/${id.slice(0, 2)}; rm `
        + `-rf ${own}/pack && ln -s ${there}/pack ${own}/pack; echo ${there} > ${own}/info/alternates; `
        + `echo ${there} > ${own}/info/http-alternates`,
      `git update-ref refs/heads/agent/c-1 $(git commit-tree -m x -p HEAD $(printf '100644 `
        + `blob ${id}\\tsecret.txt\\n' | git mktree --missing))`,
      'git symbolic-ref HEAD refs/heads/agent/c-1; git read-tree HEAD',
    ]
    const frames = await runTurn(client, 'c-1', steps.map(runs).join('\n'))
    // Simulates an escape from the wall.
    const note = JSON.parse(readFileSync(join(data, 'agent/made/c-1.json'), 'utf8')) as { repos: { gitdir: string }[] }
    writeFileSync(join(note.repos[0]!.gitdir, 'objects/info/alternates'), `${there}\n`)
    t.ok(
      frames.some(frame => frame.kind === 'notice' && frame.source === 'copies'),
      JSON.stringify(frames.slice(-3)),
    )
    const told = JSON.stringify([
      await client.call('GET /agents/{id}/diff', { id: 'c-1' }),
      await client
        .call('GET /agents/{id}/{repo}/file-diff', { id: 'c-1', repo: 'root', path: 'secret.txt' })
        .catch(String),
      await client.call('POST /agents/{id}/land', { id: 'c-1' }).catch(String),
      await client.call('GET /agents/{id}/conflicts', { id: 'c-1' }).catch(String),
    ])
    t.notMatch(told, /the secret of another/)
    t.match(told, /stays out of the repository/)
    t.notOk(existsSync(join(workspace, 'secret.txt')))
    t.same(bytesOf(join(common, 'objects')), objects)
  },
)

t.test("a turn's replacement of an object affects no other conversation", walled(), async t => {
  const { client, workspace } = await placeWith(t)
  await shellTurn(client, 'victim', ['echo theirs > theirs.txt'], { isolated: true })
  const diff = await client.call('GET /agents/{id}/diff', { id: 'victim' })
  const script = `
    const { execFileSync: run } = require('node:child_process'), fs = require('node:fs'), zlib = require('node:zlib')
    const git = (...args) => run('git', args).toString().trim()
    const at = git('rev-parse', '--git-dir') + '/objects/'
    const forged = [
      [git('rev-parse', 'main'), 'tree ' + git('rev-parse', 'HEAD^{tree}')],
      [git('rev-parse', 'main^{tree}'), ''],
      [git('rev-parse', 'agent/victim'), 'tree ' + git('rev-parse', 'main^{tree}')],
    ]
    for (const [id, text] of forged) {
      const body = text ? text + '\\nauthor A <a@b.c> 1 +0000\\ncommitter A <a@b.c> 1 +0000\\n\\nforged\\n' : ''
      const object = (text ? 'commit ' : 'tree ') + body.length + '\\0' + body
      fs.mkdirSync(at + id.slice(0, 2), { recursive: true })
      fs.writeFileSync(at + id.slice(0, 2) + '/' + id.slice(2), zlib.deflateSync(object))
    }`
  await runTurn(client, 'c-1', 'say here', { isolated: true })
  writeFileSync(join(workspace, 'forge.cjs'), script)
  await runTurn(
    client,
    'c-1',
    `write forge.cjs\n${script
      .trim()
      .split('\n')
      .map(line => `| ${line}`)
      .join('\n')}\n${runs(`echo x > x; git add -A; git commit -qm x; ${process.execPath} forge.cjs`)}`,
  )
  for (const id of ['c-1', 'victim']) await client.call('GET /agents/{id}/diff', { id })
  t.same(await client.call('GET /agents/{id}/diff', { id: 'victim' }), diff)
  t.equal(inGit(workspace, 'fsck', '--strict', '--no-dangling'), '')
})

t.test('a branch that another program moved in the repository is reported and never landed', walled(), async t => {
  const { client, workspace } = await placeWith(t)
  for (const id of ['kept', 'away']) await shellTurn(client, id, [`echo ${id} > ${id}.txt`], { isolated: true })
  await client.call('POST /agents/archive', { ids: ['away'] })
  const foreign = inGit(workspace, 'commit-tree', '-m', 'foreign', '-p', 'HEAD', 'HEAD^{tree}').trim()
  const refs = { kept: 'refs/heads/agent/kept', away: 'refs/sandbox/parked/away' }
  for (const [id, ref] of Object.entries(refs)) {
    const tip = inGit(workspace, 'rev-parse', ref).trim()
    inGit(workspace, 'update-ref', ref, foreign)
    t.match(
      await refusalOf(() => client.call('POST /agents/{id}/land', { id })),
      { status: 409, message: /was moved in the repository by something other than its conversation/ },
      id,
    )
    t.notOk(existsSync(join(workspace, `${id}.txt`)))
    inGit(workspace, 'update-ref', ref, tip)
    t.match(await client.call('POST /agents/{id}/land', { id }), { landed: true }, id)
  }
})

t.test('a huge object is imported in pieces', walled(), async t => {
  const { client, workspace } = await placeWith(t)
  await runTurn(client, 'c-1', 'say here', { isolated: true })
  const before = process.memoryUsage.rss()
  await shellTurn(client, 'c-1', [
    'truncate -s 300M big.bin && git add big.bin && git -c core.bigFileThreshold=1m commit -qm big',
  ])
  t.equal(inGit(workspace, 'cat-file', '-s', 'agent/c-1:big.bin').trim(), String(300 * 1024 * 1024))
  t.ok(process.memoryUsage.rss() - before < 150 * 1024 * 1024)
})
