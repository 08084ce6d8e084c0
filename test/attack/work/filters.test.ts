import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { folderOf, inGit, spawnDaemon } from '../../support/daemon.js'
import { runTurn } from '../../support/turns.js'
import { walled } from '../support.js'
import { USERS } from '../users.js'

const ME = process.getuid?.() ?? 0

/** Converts, and before that tries what a filter could do to the machine. */
const filter = (base: string, convert: string): string =>
  [
    `touch ${base}/outside`,
    `touch ${base}/workspace/.git/planted`,
    `cp ${base}/data/machine.key ${base}/workspace/.git/key`,
    convert,
  ].join('; ')

const PLANTED = ['outside', 'workspace/.git/planted', 'workspace/.git/key']

/** A workspace whose files a filter converts that attacks, on a daemon of a user whose git alone knows the filter. */
const attacked = async (t: Test, uid: number) => {
  const base = folderOf(t)
  const [workspace, data, home] = ['workspace', 'data', 'home'].map(name => join(base, name)) as [
    string,
    string,
    string,
  ]
  for (const folder of [workspace, data, home]) mkdirSync(folder, { mode: 0o700 })
  inGit(workspace, 'init', '-q', '-b', 'main')
  writeFileSync(join(workspace, '.gitattributes'), '*.up filter=up\n')
  writeFileSync(join(workspace, 'h.up'), 'hello\n')
  writeFileSync(join(workspace, 'b.up'), 'both\n')
  inGit(workspace, 'add', '-A')
  inGit(workspace, 'commit', '-qm', 'first')
  for (const [name, text] of [
    ['h.up', 'HELLO\n'],
    ['b.up', 'BOTH\n'],
  ] as const)
    writeFileSync(join(workspace, name), text)
  const quoted = (command: string) => `"${command.replaceAll('"', '\\"')}"`
  writeFileSync(
    join(home, '.gitconfig'),
    `[filter "up"]\n\tclean = ${quoted(filter(base, 'tr A-Z a-z'))}\n\tsmudge = ${quoted(filter(base, 'tr a-z A-Z'))}\n`
      + '\trequired = true\n',
  )
  if (uid !== ME) execFileSync('chown', ['-R', `${uid}:${uid}`, base])
  const user = uid === ME ? {} : { user: uid }
  const daemon = await spawnDaemon(t, { workspace, data, ...user, env: { HOME: home } })
  const left = () => PLANTED.filter(path => existsSync(join(base, path)))
  // Outside of a wall it leaves all of them behind.
  execFileSync('sh', ['-c', filter(base, 'true')])
  t.same(left(), PLANTED)
  for (const path of PLANTED) rmSync(join(base, path))
  return { ...daemon, left, text: (name: string) => readFileSync(join(workspace, name), 'utf8') }
}

for (const [who, uid] of USERS) {
  t.test(`a filter of the person's git converts files of turns behind a wall, for ${who}`, walled(), async t => {
    // Where a filter runs outside of a wall it leaves a file behind.
    const { client, workspace, left, text } = await attacked(t, uid)
    await runTurn(client, 'c-1', 'run cat h.up; echo HELLO WORLD > h.up; echo NEW > n.up; rm b.up', { isolated: true })
    const { repos } = await client.call('GET /agents/{id}/diff', { id: 'c-1' })
    t.same(repos[0]!.changes.map(({ path, status }) => `${status} ${path}`).sort(), [
      'added n.up',
      'deleted b.up',
      'modified h.up',
    ])
    t.equal(inGit(workspace, '-c', 'safe.directory=*', 'show', 'agent/c-1:h.up'), 'hello world\n')
    const landed = await client.call('POST /agents/{id}/land', { id: 'c-1' })
    t.match(landed, { landed: true }, 'nothing is in the way')
    t.equal(text('h.up'), 'HELLO WORLD\n')
    t.equal(text('n.up'), 'NEW\n')
    t.notOk(existsSync(join(workspace, 'b.up')))
    const { files } = await client.call('GET /git/{repo}/status', { repo: 'root' })
    t.same(files?.toSorted(), ['b.up', 'h.up', 'n.up'], 'the page of git says so too')
    t.same(left(), [], 'it left nothing outside of a wall')
    await client.call('POST /git/{repo}/stage', { repo: 'root', paths: ['n.up'] })
    t.equal(inGit(workspace, '-c', 'safe.directory=*', 'show', ':n.up'), 'new\n', 'staged as git stores it')
  })

  t.test(`attributes and settings of a turn start no program elsewhere, for ${who}`, walled(), async t => {
    const { client, workspace, left, text } = await attacked(t, uid)
    const plant = `touch ${join(workspace, '..', 'outside')}; cat`
    const turn = [
      `run git config filter.own.smudge '${plant}'; git config filter.own.clean '${plant}'; true`,
      `run printf '* filter=own\\n*.txt filter=up\\n' > .gitattributes; printf '* filter=own' > .git-attributes`,
      'run echo x > x.txt',
      `run mkdir -p .git/info 2>/dev/null; printf '* filter=own' > $(git rev-parse --git-dir)/info/attributes; true`,
    ].join('\n')
    await runTurn(client, 'c-1', turn, { isolated: true })
    const landed = await client.call('POST /agents/{id}/land', { id: 'c-1' })
    t.match(landed, { landed: true })
    t.equal(text('x.txt').toLowerCase(), 'x\n')
    t.same(left(), [], 'nothing ran outside of a wall')
  })
}
