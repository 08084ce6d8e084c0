// Reads of a repository against the git program alone, in the same run: `node dist/test/bench/git.js`. Only the ratios
// count.
import { execFileSync } from 'node:child_process'
import fs, { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import isomorphic from 'isomorphic-git'
import { commitLog } from '../../plugins/git/commits/log.js'
import { workingStatus } from '../../plugins/git/changes/scan.js'
import { Objects } from '../../plugins/git/objects/objects.js'
import { RepoGit } from '../../plugins/git/repositories/repo-git.js'
import type { OpenRepo } from '../../plugins/git/repositories/repositories.js'
import { accessViewWith } from '../../sdk/node/access/access-view.js'
import { inTurns, median, ms, print, quick, ratio, timed, verdict, x } from './measure.js'

const FILES = quick ? 200 : 20_000
const COMMITS = quick ? 5 : 300
const ROUNDS = quick ? 1 : 9
const BLOBS = 200

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'bench-git-')))
const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
const bare = (...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.org', ...args], {
    cwd: workspace,
    maxBuffer: 1 << 28,
  })

mkdirSync(data, { recursive: true })
for (let at = 0; at < FILES; at++) {
  const dir = join(workspace, `d${at % 100}`)
  mkdirSync(dir, { recursive: true })
  writeFileSync(join(dir, `f${at}`), `file ${at}\n`.repeat(20))
}
bare('init', '-q', '-b', 'main')
bare('add', '-A')
bare('commit', '-q', '-m', 'first')
for (let at = 0; at < COMMITS; at++) bare('commit', '-q', '--allow-empty', '-m', `commit ${at}`)
bare('gc', '-q')
for (let at = 0; at < 20; at++) writeFileSync(join(workspace, `d${at}`, `f${at}`), 'changed\n')

const gitdir = join(workspace, '.git')
const place = { repo: 'root', dir: workspace, gitdir, common: gitdir }
const git = new RepoGit(place, { workspace, data })
const view = accessViewWith(workspace, undefined)
const opened: OpenRepo = { repo: 'root', git, view, only: undefined, sees: () => true }
const ended = new AbortController()
const objects = new Objects(ended.signal)
const names = Array.from({ length: BLOBS }, (_, at) => `HEAD:d${at % 100}/f${at}`)

/** Kept between rounds: what isomorphic-git has read of the packs. */
const cache = {}
const status = ['status', '--porcelain=v2', '--branch', '-z', '--untracked-files=all']
const found = await inTurns(
  {
    status: () => timed(() => workingStatus(opened, 500)),
    'bare status': () => timed(() => bare('--no-optional-locks', ...status)),
    log: () => timed(() => commitLog(objects, opened, { limit: 300 })),
    'bare log': () => timed(() => bare('log', '--max-count=300', '--format=%H%n%h%n%P%n%an%n%ae%n%at%n%D%n%B')),
    blobs: () =>
      timed(async () => {
        for (const name of names) await objects.read(git, name, 1024 * 1024)
      }),
    'blobs by isomorphic-git': () =>
      timed(async () => {
        for (const name of names) {
          const filepath = name.slice('HEAD:'.length)
          const oid = await isomorphic.resolveRef({ fs, dir: workspace, ref: 'HEAD' })
          await isomorphic.readBlob({ fs, dir: workspace, oid, filepath, cache })
        }
      }),
    'spawned blobs': async () =>
      (await timed(() => {
        for (const name of names.slice(0, 20)) bare('cat-file', 'blob', name)
      }))
      * (BLOBS / 20),
  },
  ROUNDS,
)

for (const name of ['status', 'bare status', 'log', 'bare log'] as const) print(name, ms(median(found[name])))
print('one blob', ms(median(found.blobs) / BLOBS))
print('one blob by isomorphic-git, warm', ms(median(found['blobs by isomorphic-git']) / BLOBS))
verdict(`git: status of ${FILES} files, behind the wall, to git alone`, ratio(found.status, found['bare status']), {
  most: 2,
  as: x,
})
verdict('git: log of 300 commits to git alone', ratio(found.log, found['bare log']), { most: 3, as: x })
verdict('git: a blob to a spawn of git', ratio(found.blobs, found['spawned blobs']), { most: 0.1, as: x })
ended.abort()
rmSync(folder, { recursive: true, force: true })
