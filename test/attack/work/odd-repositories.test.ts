import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { folderOf, spawnDaemon } from '../../support/daemon.js'
import { runTurn } from '../../support/turns.js'
import { runs, shellTurn, walled } from '../support.js'
import { USERS } from '../users.js'

t.setTimeout(600_000)

/** A daemon of a user on a workspace `$W` that a script makes as this user; `$B` is a folder beside it. */
const placeOf = async (t: Test, uid: number, make: string) => {
  const base = folderOf(t)
  for (const folder of ['', 'b', 'w', 'home', 'data']) {
    mkdirSync(join(base, folder), { recursive: true })
    chownSync(join(base, folder), uid, uid)
    chmodSync(join(base, folder), folder === 'data' ? 0o700 : 0o755)
  }
  const [workspace, beside] = [join(base, 'w'), join(base, 'b')]
  const git = { GIT_CEILING_DIRECTORIES: base, HOME: join(base, 'home') }
  const user = uid === process.getuid?.() ? {} : { user: uid }
  const sh = (command: string, cwd = workspace): string =>
    execFileSync('bash', ['-ec', command], {
      cwd,
      encoding: 'latin1',
      env: { ...git, PATH: process.env.PATH, LANG: 'C.UTF-8', W: workspace, B: beside },
      ...('user' in user && { uid, gid: uid }),
    })
  sh('git config --global user.name Ada; git config --global user.email ada@example.org')
  sh(make)
  const env = { ...git, XDG_STATE_HOME: undefined, GIT_CONFIG_GLOBAL: undefined }
  const daemon = await spawnDaemon(t, { workspace, data: join(base, 'data'), env, ...user })
  return { ...daemon, sh, beside }
}

type Place = Awaited<ReturnType<typeof placeOf>>

/** Lands the work of a conversation, and returns its diff as `repo: status path`. */
const landAll = async ({ client }: Pick<Place, 'client'>, id: string): Promise<string[]> => {
  const { repos } = await client.call('GET /agents/{id}/diff', { id })
  const expect = Object.fromEntries(repos.map(({ repo, tip }) => [repo, tip]))
  const { landed, conflicts } = await client.call('POST /agents/{id}/land', { id, expect })
  if (!landed) throw new Error(`not landed: ${JSON.stringify(conflicts)}`)
  return repos.flatMap(({ repo, changes }) => changes.map(({ path, status }) => `${repo}: ${status} ${path}`)).sort()
}

const BEGIN = 'begin() { git init -q -b main "$@"; git add -A; git commit -qm first; }'

const NESTED = `${BEGIN}
  printf 1 > "$(printf 'bad\\377')"; printf 2 > plain; mkdir "$(printf 'in\\376')"; printf 3 > "$(printf 'in\\376/x')"
  printf 4 > "$(printf 'kept\\357\\277\\275')"; begin
  printf '%s\\n' sparse lost broken ignored ends secret > .git/info/exclude
  mkdir sparse lost broken ignored ends secret
  cd $W/sparse; mkdir in away; echo 1 > in/x; echo 1 > away/x; begin; git sparse-checkout set in
  cd $W/lost; echo s > s.dat; echo p > p.txt; echo 's.dat filter=gone' > .gitattributes; begin
  git config filter.gone.clean 'no-such-program clean'; git config filter.gone.smudge 'no-such-program smudge'
  git config filter.gone.required true; touch s.dat
  cd $W/broken; echo x > x; begin; git branch sound; git tag v1
  echo 1111111111111111111111111111111111111111 > .git/refs/heads/lost; echo rubbish > .git/refs/tags/broken
  cd $W/ignored; printf 'one\\ntwo\\nthree\\n' > a.txt; begin; echo '*.txt' > .gitignore; git add .; git commit -qm two
  cd $W/ends; printf 'one\\r\\ntwo\\r\\n' > a.txt; cp a.txt b.txt; printf 'one\\ntwo\\n' > c.txt; begin
  printf '*.txt text=auto\\n' > .gitattributes; git add .gitattributes; git commit -qm two
  cd $W/secret; git init -q -b main; git config filter.turn.clean 'tr a-z n-za-m'
  git config filter.turn.smudge 'tr a-z n-za-m'; git config filter.turn.required true
  echo '*.txt filter=turn' > .gitattributes; echo word > a.txt; git add -A; git commit -qm first`

/** The files of a folder by their names, both one character for each byte. */
const bytesIn = (folder: string): { [name: string]: string } =>
  Object.fromEntries(
    (
      readdirSync(folder, { withFileTypes: true, encoding: 'latin1' as never }) as unknown as {
        name: string
        isFile(): boolean
      }[]
    )
      .filter(entry => entry.isFile())
      .map(({ name }) => [name, readFileSync(Buffer.from(`${folder}/${name}`, 'latin1'), 'latin1')]),
  )

for (const [user, uid] of USERS) {
  t.test(`work lands in repositories of every kind, and keeps names and forms, for ${user}`, walled(), async t => {
    const place = await placeOf(t, uid, NESTED)
    const { client, workspace, sh } = place
    const work = [
      'for f in bad* kept* plain in*/x; do printf more >> "$f"; done; printf new > "$(printf "new\\\\375")"',
      'mkdir -p ignored/made && mv ignored/a.txt ignored/made/b.txt && echo four >> ignored/made/b.txt',
      'echo new > ignored/n.txt && echo x > ignored/y.md',
      'printf "three\\r\\n" >> ends/a.txt; mv ends/b.txt ends/d.txt; printf "three\\n" >> ends/c.txt',
      'echo more >> lost/p.txt; echo new > sparse/out.txt; mkdir -p sparse/beyond && echo n > sparse/beyond/n',
      'echo more >> secret/a.txt',
    ]
    const frames = await runTurn(client, 'one', work.map(runs).join('\n'), { isolated: true })
    const notices = frames.flatMap(frame => (frame.kind === 'notice' ? frame.text : []))
    t.match(notices.join('\n'), /git ignores 1 new file .* cannot land: ignored\/n\.txt; /)
    t.equal(notices.filter(text => text.includes('gone')).length, 1, 'the missing filter is one notice')
    const sides = await client.call('GET /agents/{id}/{repo}/file-diff', { id: 'one', repo: 'secret', path: 'a.txt' })
    t.strictSame(sides, { before: 'word\n', after: 'word\nmore\n' }, 'what is encrypted can be read')
    const shown = await client.call('GET /agents/{id}/{repo}/file-diff', {
      id: 'one',
      repo: 'root',
      path: 'in\uFFFD/x',
    })
    t.strictSame(shown, { before: '3', after: '3more' })
    const diff = await landAll(place, 'one')
    t.ok(diff.includes('ignored: renamed made/b.txt'), 'a tracked file is renamed under an ignored name')
    t.ok(diff.includes('root: modified bad\uFFFD') && diff.includes('root: added new\uFFFD'), 'bytes show as U+FFFD')
    t.match(bytesIn(workspace), {
      'bad\xff': '1more',
      plain: '2more',
      'kept\xef\xbf\xbd': '4more',
      'new\xfd': 'new',
    })
    t.equal(readFileSync(Buffer.from(`${workspace}/in\xfe/x`, 'latin1'), 'utf8'), '3more')
    t.strictSame(
      Object.keys(bytesIn(workspace)).sort(),
      ['bad\xff', 'kept\xef\xbf\xbd', 'new\xfd', 'plain'].sort(),
      'no other name',
    )
    t.equal(readFileSync(join(workspace, 'ignored/made/b.txt'), 'utf8'), 'one\ntwo\nthree\nfour\n')
    t.notOk(existsSync(join(workspace, 'ignored/a.txt')))
    t.notOk(existsSync(join(workspace, 'ignored/n.txt')))
    t.match(bytesIn(join(workspace, 'ends')), {
      'a.txt': 'one\r\ntwo\r\nthree\r\n',
      'd.txt': 'one\r\ntwo\r\n',
      'c.txt': 'one\ntwo\nthree\n',
    })
    t.equal(readFileSync(join(workspace, 'secret/a.txt'), 'utf8'), 'word\nmore\n')

    for (const [repo, paths] of Object.entries({ sparse: ['out.txt', 'beyond/n'], lost: ['p.txt'] })) {
      const was = sh('git rev-parse HEAD', join(workspace, repo))
      const { committed } = await client.call('POST /git/{repo}/commit', { repo, message: 'Take it', paths })
      t.ok(committed, `${repo} can be committed`)
      const { action } = await client.call('GET /git/{repo}/undo', { repo })
      await client.call('POST /git/{repo}/undo', { repo, previousSha: action!.previousSha })
      t.equal(sh('git rev-parse HEAD', join(workspace, repo)), was)
    }
    t.match(sh('git ls-files -t away', join(workspace, 'sparse')), /^S away\/x/, 'sparse stays sparse')
    sh('echo t >> s.dat', join(workspace, 'lost'))
    await t.rejects(
      client.call('POST /git/{repo}/commit', { repo: 'lost', message: 'Take it', paths: ['s.dat'] }),
      { status: 409, message: /no-such-program/ },
      'a file whose filter is missing is not stored as it is',
    )
    const { branches, tags, broken } = await client.call('GET /git/{repo}/branches', { repo: 'broken' })
    t.strictSame(branches.map(({ name }) => name).sort(), ['agent/one', 'main', 'sound'])
    t.strictSame(
      tags.map(({ name }) => name),
      ['v1'],
    )
    t.strictSame(broken, ['refs/heads/lost', 'refs/tags/broken'], 'broken refs are named')
    t.equal((await client.call('GET /git/{repo}/log', { repo: 'broken' })).commits.length, 1)
  })

  t.test(`a git dir elsewhere is that of the workspace, or nothing writes to it, for ${user}`, walled(), async t => {
    const make = `${BEGIN}; echo a > a.txt; begin --separate-git-dir $B/own
      mkdir $B/other; cd $B/other; echo o > a.txt; begin --separate-git-dir $B/foreign`
    const { client, sh, beside } = await placeOf(t, uid, make)
    sh('echo more >> a.txt')
    const commit = () => client.call('POST /git/{repo}/commit', { repo: 'root', message: 'Take it', paths: ['a.txt'] })
    t.ok((await commit()).committed)
    const { action } = await client.call('GET /git/{repo}/undo', { repo: 'root' })
    t.ok((await client.call('POST /git/{repo}/undo', { repo: 'root', previousSha: action!.previousSha })).ok)
    const [log] = await shellTurn(client, 'shared', ['git log --oneline | wc -l'])
    t.equal(log?.trim(), '1', 'a turn in the shared tree has the history')
    const was = sh('git -C $B/other rev-parse HEAD; ls $B/foreign')
    await shellTurn(client, 'shared', [`echo "gitdir: ${beside}/foreign" > .git`])
    const [answer] = await shellTurn(client, 'shared', [
      `touch ${beside}/foreign/planted && echo DONE; git commit -qam x && echo DONE; true`,
    ])
    t.notMatch(answer, 'DONE')
    await t.rejects(commit(), 'a pointer that a turn wrote leads git to no other repository')
    t.equal(sh('git -C $B/other rev-parse HEAD; ls $B/foreign'), was)
  })
}
