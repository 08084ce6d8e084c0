import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Copies } from '../../../plugins/agent/copies/copies.js'
import type { CopyRepo } from '../../../plugins/agent/contract.js'
import { listEnv } from '../../../sdk/node/programs/run.js'
import { homeOfConversation } from '../../../sdk/node/wall/home.js'
import { runWalled, walled, type WallKind } from '../../../sdk/node/wall/wall.js'
import { bytesOf } from '../support.js'

/** The faults after an attempt: all empty if there is none. */
export interface Faults {
  readonly attempt: string
  readonly faults: string[]
}

const WHO = 'A <a@example.org> 1700000000 +0000'
/** Prints the bytes of an object id. */
export const BYTES = `"${process.execPath}" -e "process.stdout.write(Buffer.from(process.argv[1], 'hex'))"`
/** The message about work that was not imported. */
const OUT = /stays out of the repository|has lost its branch/

/**
 * Attempts of a turn on objects in its own folders and in the repository; `tells` is the message that the daemon must
 * report.
 */
const ATTEMPTS: { readonly [attempt: string]: { readonly script: string; readonly tells?: RegExp } } = {
  'overwrite and delete objects of the repository': {
    script:
      'find "$LENDER/objects" -type f | while read -r f; do chmod u+w "$f"; echo x > "$f"; rm -f "$f"; '
      + 'done; rm -rf "$LENDER/objects/pack"; mv "$LENDER/objects" "$LENDER/gone"',
  },
  'move the branches of others and of the main line': {
    script:
      'for r in main agent/victim; do git --git-dir="$LENDER" update-ref refs/heads/$r HEAD; echo "$(git '
      + 'rev-parse HEAD)" > "$LENDER/refs/heads/$r"; git branch -f $r HEAD; rm -f "$LENDER/refs/heads/$r"; done',
  },
  'a tree with names no checkout has': {
    script: `b=$(echo x | git hash-object -w --stdin)
      { for n in .git .. .; do printf '100644 %s\\0' $n; ${BYTES} $b; done; } > t
      git update-ref refs/heads/agent/c-1 $(git commit-tree -m x -p HEAD $(git hash-object -t tree -w --literally t))`,
    tells: OUT,
  },
  'a tree that names what nobody has': {
    script:
      `git update-ref refs/heads/agent/c-1 $(git commit-tree -m x -p HEAD $(printf '100644 blob `
      + `%s\\tf\\n' ${'1'.repeat(40)} | git mktree --missing))`,
    tells: OUT,
  },
  'a commit that no commit is': {
    script:
      `printf 'tree %s\\nauthor x\\n\\nx' $(git rev-parse HEAD^{tree}) > c; git update-ref `
      + 'refs/heads/agent/c-1 $(git hash-object -t commit -w --literally c)',
    tells: OUT,
  },
  'a branch that stands on a tree': {
    script: `echo more > more; git add more; git write-tree > "$GIT_HERE/refs/heads/agent/c-1"`,
    tells: OUT,
  },
  'a branch that stands on a blob of the repository': {
    script: `git rev-parse main:a.txt > "$GIT_HERE/refs/heads/agent/c-1"`,
    tells: OUT,
  },
  'a branch that stands for another': {
    script: `echo 'ref: refs/heads/main' > "$GIT_HERE/refs/heads/agent/c-1"`,
    tells: OUT,
  },
  'an object under the name of another': {
    script: `echo x > n; git add n; git commit -qm n; t=$(git rev-parse HEAD^{tree})
      f="$GIT_HERE/objects/$(echo $t | cut -c1-2)/$(echo $t | cut -c3-)"; e=$(git hash-object -t tree /dev/null -w)
      chmod u+w "$f"; cp "$GIT_HERE/objects/$(echo $e | cut -c1-2)/$(echo $e | cut -c3-)" "$f"`,
    tells: OUT,
  },
  'a history that is said to be cut off': {
    script:
      'git commit -q --allow-empty -m hidden; git commit -q --allow-empty -m on; git rev-parse HEAD > '
      + '"$GIT_HERE/shallow"',
    tells: OUT,
  },
  'objects that lie where a link leads': {
    script: `ls -d "$SECRET_FOLDER" 2>/dev/null; rm -rf "$GIT_HERE/objects/$SECRET_PART" "$GIT_HERE/objects/pack"
      ln -s "$SECRET_FOLDER/$SECRET_PART" "$GIT_HERE/objects/$SECRET_PART"
      ln -s "$SECRET_FOLDER/pack" "$GIT_HERE/objects/pack"
      t=$(printf '100644 blob %s\\tsecret\\n' $SECRET | git mktree --missing)
      git update-ref refs/heads/agent/c-1 $(git commit-tree -m x -p HEAD $t)`,
    tells: OUT,
  },
  'pipes in the place of objects, the index, the branch and its log': {
    script: `echo x > n; git add n; git commit -qm n; h=$(git rev-parse HEAD)
      cd "$GIT_HERE"; o=objects/$(echo $h | cut -c1-2)/$(echo $h | cut -c3-)
      rm -f index logs/HEAD $o; mkfifo index logs/HEAD $o
      rm -f logs/refs/heads/agent/c-1; mkfifo logs/refs/heads/agent/c-1`,
    tells: /stays out|damaged|git|HEAD/,
  },
  'folders of its own replaced by links': {
    script:
      'cd "$GIT_HERE"; mv refs r; ln -s "$LENDER/refs" refs; mv logs l; ln -s "$LENDER/logs" logs; rm -rf '
      + 'hooks; ln -s "$LENDER/hooks" hooks; ln -s "$LENDER/packed-refs" packed-refs.lock',
    tells: /./,
  },
  'a log with lines of its own making': {
    script:
      `echo x > n; git add n; git commit -qm n; l="$GIT_HERE/logs/refs/heads/agent/c-1"; printf '%s `
      + `%s ${WHO}\\tforged\\n' ${'2'.repeat(40)} ${'3'.repeat(40)} >> "$l"; printf 'no line\\0at all' >> "$l"`,
  },
}

const git = (cwd: string, ...args: string[]) =>
  execFileSync('git', args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 1 << 26,
    env: {
      ...listEnv(),
      GIT_AUTHOR_NAME: 'A',
      GIT_AUTHOR_EMAIL: 'a@b.c',
      GIT_COMMITTER_NAME: 'A',
      GIT_COMMITTER_EMAIL: 'a@b.c',
      GIT_CONFIG_GLOBAL: '/dev/null',
    },
  }).trim()

const repositoryAt = (folder: string, text: string): string => {
  mkdirSync(folder, { recursive: true })
  git(folder, 'init', '-q', '-b', 'main')
  writeFileSync(join(folder, 'a.txt'), text)
  git(folder, 'add', '-A')
  git(folder, 'commit', '-qm', 'first')
  return git(folder, 'rev-parse', 'HEAD:a.txt')
}

/**
 * Makes one attempt from behind a wall of this kind, lets the daemon import what it accepts, and returns the
 * faults.
 */
const attempt = async (kind: WallKind, base: string, script: string, tells: RegExp | undefined): Promise<string[]> => {
  const [workspace, data, elsewhere] = [join(base, 'work'), join(base, 'data'), join(base, 'elsewhere')]
  repositoryAt(workspace, 'one\n')
  const secret = repositoryAt(elsewhere, 'a secret\n')
  git(workspace, 'gc', '-q')
  const copies = new Copies({ workspace, data, folder: join(data, 'agent') })
  const [mine, theirs]: [CopyRepo[], CopyRepo[]] = [await copies.ensure('c-1', []), await copies.ensure('victim', [])]
  writeFileSync(join(copies.dir('victim'), 'theirs.txt'), 'theirs\n')
  await copies.commitRest('victim', theirs)
  const common = join(workspace, '.git')
  const of = (folder: string) => ({
    bytes: bytesOf(folder, /^(refs|logs\/refs)\/heads\/agent\/c-1$|^objects(\/|$)/),
    fsck: git(workspace, 'fsck', '--strict', '--no-dangling'),
    diff: git(workspace, 'diff', 'main', 'agent/victim'),
  })
  const [before, objects, outside] = [of(common), bytesOf(join(common, 'objects')), bytesOf(elsewhere)]
  const spec = { ...(await copies.wall('c-1')), home: await homeOfConversation(data, 'c-1'), cwd: workspace }
  const env = {
    ...listEnv(),
    LENDER: join(data, 'git/0.repository'),
    GIT_HERE: join(data, 'git/0'),
    SECRET: secret,
    SECRET_PART: secret.slice(0, 2),
    SECRET_FOLDER: join(elsewhere, '.git/objects'),
    GIT_AUTHOR_NAME: 'A',
    GIT_AUTHOR_EMAIL: 'a@b.c',
    GIT_COMMITTER_NAME: 'A',
    GIT_COMMITTER_EMAIL: 'a@b.c',
    // With the current time a commit id would sometimes begin like that of an object that the script removed.
    GIT_AUTHOR_DATE: '2026-01-01T00:00:00Z',
    GIT_COMMITTER_DATE: '2026-01-01T00:00:00Z',
  }
  const ran = await runWalled({ ...spec, env }, 'sh', ['-c', script], { timeoutMs: 60_000 }, kind)
  const faults: string[] = []
  const changed = (when: string) => {
    const now = of(common)
    for (const [name, value] of Object.entries(now))
      if (JSON.stringify(value) !== JSON.stringify(before[name as keyof typeof before]))
        faults.push(`${when}: ${name} of the repository changed`)
    const held = bytesOf(join(common, 'objects'))
    for (const [name, value] of Object.entries(objects))
      if (held[name] !== value) faults.push(`${when}: the object ${name} changed`)
    if (JSON.stringify(bytesOf(elsewhere)) !== JSON.stringify(outside))
      faults.push(`${when}: what lies elsewhere changed`)
    return Object.keys(held).filter(name => !(name in objects))
  }
  for (const name of changed('behind the wall')) faults.push(`behind the wall: the object ${name} is new`)
  const told = await copies.commitRest('c-1', mine).then(
    ([tip]) => tip?.out ?? '',
    (error: Error) => error.message,
  )
  const came = changed('taken over')
  if (tells ? !tells.test(told) : told !== '')
    faults.push(`it said ${JSON.stringify(told)}; the script ended so: ${JSON.stringify(ran)}`)
  if (tells && came.length > 0) faults.push(`what was refused came in: ${came.join(' ')}`)
  if (git(workspace, 'rev-parse', 'agent/victim') !== git(copies.dir('victim'), 'rev-parse', 'HEAD'))
    faults.push('the branch of another moved')
  // Afterwards the copy can still be used, or removed.
  await copies.remove('c-1', mine).catch((error: Error) => faults.push(error.message))
  changed('thrown away')
  return faults
}

/** Makes all attempts behind a wall of this kind, each in its own folder. */
export const attempts = async (kind: WallKind, base: string): Promise<Faults[]> => {
  const found: Faults[] = []
  for (const [at, [name, { script, tells }]] of Object.entries(ATTEMPTS).entries()) {
    const faults = await attempt(kind, join(base, String(at)), script, tells).catch((error: Error) => [
      error.stack ?? error.message,
    ])
    found.push({ attempt: name, faults })
  }
  return found
}

// As a program it makes the attempts as its own user.
if (process.argv[1]?.endsWith('objects-attempts.js')) {
  const [, , kind = 'bwrap', base = ''] = process.argv
  const probe = { workspace: join(base, 'w'), data: join(base, 'd'), cwd: '/', env: listEnv() }
  for (const folder of [probe.workspace, probe.data]) mkdirSync(folder, { recursive: true })
  const { enforced } = await walled(probe, 'true', [], kind as WallKind)
  console.log(JSON.stringify(enforced ? await attempts(kind as WallKind, join(base, 'place')) : 'none'))
  process.exit(0)
}
