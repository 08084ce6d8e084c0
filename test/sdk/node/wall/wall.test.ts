import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { listEnv, run } from '../../../../sdk/node/programs/run.js'
import { homeOfConversation } from '../../../../sdk/node/wall/home.js'
import { copyOf } from '../../../support/repositories/copy.js'
import { runWalled, walled, wallKind, type WallKind, type WallSpec } from '../../../../sdk/node/wall/wall.js'
import { noWall } from '../../../support/walls.js'
import { spread } from '../../../support/lists.js'

const TOOLCHAIN = /^(\.nvm|\.volta|\.asdf|\.cargo|\.rustup|go|sdk|\.pyenv|\.rbenv|\.sdkman|\.bun|\.deno|\.local)$/

const IDENTITY = {
  GIT_AUTHOR_NAME: 'A',
  GIT_AUTHOR_EMAIL: 'a@example.com',
  GIT_COMMITTER_NAME: 'A',
  GIT_COMMITTER_EMAIL: 'a@example.com',
  GIT_CONFIG_GLOBAL: '/dev/null',
}

const git = (cwd: string, ...args: string[]) =>
  execFileSync('git', args, {
    cwd,
    encoding: 'utf8',
    env: { ...listEnv(), ...IDENTITY },
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim()

/** Every file below a folder with a hash of its bytes, except names that match `skip`. */
const bytesOf = (folder: string, skip = /^$/) => {
  const found: { [path: string]: string } = {}
  for (const name of readdirSync(folder, { recursive: true }) as string[]) {
    if (skip.test(name)) continue
    const path = join(folder, name)
    const stat = lstatSync(path)
    if (stat.isSymbolicLink()) found[name] = `link ${readlinkSync(path)}`
    else if (stat.isFile()) found[name] = createHash('sha256').update(readFileSync(path)).digest('hex')
  }
  return found
}

/** A workspace with a history, a data folder with a secret, and a private copy of the workspace in it. */
const place = async (t: Test) => {
  const root = realpathSync(
    t.testdir({ work: { 'a.txt': 'one\n', '.sandbox': { 'settings.json': '{}' } }, data: { secret: 'x' } }),
  )
  const workspace = join(root, 'work')
  const data = join(root, 'data')
  git(workspace, 'init', '-q', '-b', 'main')
  git(workspace, 'add', 'a.txt')
  git(workspace, 'commit', '-qm', 'first')
  const dir = join(data, 'checkouts', 'c-1')
  const own = join(data, 'git-of', 'c-1')
  const gitdirs = [await copyOf(workspace, dir, own)]
  const shared: WallSpec = { workspace, data, cwd: workspace, env: { ...listEnv(), ...IDENTITY, MARK: 'here' } }
  const common = join(workspace, '.git')
  const isolated: WallSpec = { ...shared, copy: { dir, gitdirs } }
  return { root, workspace, data, dir, shared, isolated, common, own, gitdirs }
}

/** The wall without bubblewrap too with `EVERY_CASE`; `attack/wall/` attacks both each time. */
for (const kind of spread(['bwrap', 'unshare'] as const, 1)) {
  const starts = (await walled((await place(t)).shared, 'true', [], kind)).enforced
  const options = { skip: noWall(starts, kind) }
  const sh = (spec: WallSpec, script: string, ...args: string[]) =>
    runWalled(spec, 'sh', ['-c', script, 'sh', ...args], { timeoutMs: 20_000 }, kind as WallKind)
  const out = async (spec: WallSpec, script: string, ...args: string[]) => {
    const { code, stdout, stderr } = await sh(spec, script, ...args)
    return `${stdout.toString()}${stderr}${code === 0 ? '' : `[${code}]`}`.trim()
  }

  t.test(`behind the wall of ${kind}`, options, async t => {
    t.test('the data folder is hidden and cannot be created', async t => {
      const { shared, data } = await place(t)
      t.match(await out(shared, 'ls -A "$1"', data), /No such file/)
      const beside = join(data, '../beside')
      // Below /tmp it makes them in its own.
      const refused = data.startsWith('/tmp/') ? /^$/ : /Read-only|Permission/
      t.match(await out(shared, 'mkdir "$1" && echo x > "$1/x"', data), refused)
      t.match(await out(shared, 'mkdir "$1"', beside), refused)
      t.same([join(data, 'x'), beside].filter(existsSync), [])
    })

    t.test('the root has the system and the workspace, and no files of the person', async t => {
      const { shared, workspace } = await place(t)
      const person = mkdtempSync(join(homedir(), '.wall-'))
      t.teardown(() => rmSync(person, { recursive: true }))
      writeFileSync(join(person, 'secret'), 'of the person\n')
      t.match(await out(shared, 'cat "$1/secret"', person), /No such file/)
      t.match(
        await out(shared, 'cat /etc/shadow; ls /etc/ssl/private'),
        /^(?!.*root:).*$/s,
        'files that only some users may read are hidden',
      )
      const found = (await out(shared, 'ls -A /')).split('\n')
      t.strictSame(
        found.filter(name => !/^(bin|dev|etc|gnu|lib\w*|nix|opt|proc|run|sbin|sys|tmp|usr|var)$/.test(name)).sort(),
        [
          ...new Set(
            [
              workspace,
              process.execPath,
              ...(readdirSync(homedir()).some(name => TOOLCHAIN.test(name)) ? [homedir()] : []),
            ].map(path => path.split('/')[1]!),
          ),
        ]
          .filter(name => name !== 'usr' && name !== 'tmp')
          .sort(),
      )
      t.match(
        await out(shared, 'touch /x; touch /usr/x; touch /etc/x; touch /var/x; mv /usr /u; true'),
        /^(?:.*(?:Read-only|busy|Permission).*\n?){5}$/,
      )
    })

    t.test('a home folder is writable, with its own /tmp, and is kept between commands', async t => {
      const { shared, data } = await place(t)
      const others = `ls -A -I "${data.startsWith('/tmp/') ? data.split('/')[2] : ''}" /tmp`
      const [one, other] = await Promise.all(['c-1', 'c-2'].map(id => homeOfConversation(data, id)))
      t.equal(
        await out(
          { ...shared, home: one! },
          'echo mine > ~/kept; echo mine > /tmp/kept; echo all > $XDG_CACHE_HOME/x; cd; pwd',
        ),
        one!.dir,
      )
      t.equal(await out({ ...shared, home: one! }, 'cat ~/kept /tmp/kept $XDG_CACHE_HOME/x'), 'mine\nmine\nall')
      t.equal(await out({ ...shared, home: other! }, `ls -A ~; ${others}; cat $XDG_CACHE_HOME/x`), 'all')
      const alone = await homeOfConversation(data, 'c-3', { alone: true })
      t.match(
        await out({ ...shared, home: alone }, 'cat $XDG_CACHE_HOME/x'),
        /No such file/,
        'a turn limited to some folders has its own caches',
      )
      t.equal(await out(shared, `${others}; touch /tmp/x && echo made`), 'made', 'without a home /tmp is temporary')
    })

    t.test('a workspace below /tmp is visible, and none of its parents can be moved', async t => {
      const folder = mkdtempSync('/tmp/wall-')
      t.teardown(() => rmSync(folder, { recursive: true }))
      const [workspace, data] = [join(folder, 'work'), join(folder, 'data')]
      for (const each of [workspace, data]) mkdirSync(each)
      const spec = { workspace, data, cwd: workspace, env: listEnv() }
      for (const home of [undefined, await homeOfConversation(data, 'c-1')]) {
        t.match(
          await out({ ...spec, ...(home && { home }) }, 'pwd; touch here; mv "$1" "$1-2" && echo moved; ls', folder),
          /work\nhere\nmv: .*busy$/i,
        )
      }
    })

    t.test('paths that the deployment adds can be read or written', async t => {
      const { shared, root } = await place(t)
      for (const name of ['read', 'write']) mkdirSync(join(root, name))
      writeFileSync(join(root, 'read/a'), 'a\n')
      const spec: WallSpec = {
        ...shared,
        grants: { read: [join(root, 'read'), join(root, 'missing')], write: [join(root, 'write')] },
      }
      t.match(
        await out(spec, 'cat "$1/read/a"; echo b > "$1/write/b"; cat "$1/write/b"; echo c > "$1/read/c"', root),
        /^a\nb\n.*Read-only/,
      )
    })

    t.test('the history of a linked working tree is visible, but not a folder that only a pointer names', async t => {
      const { workspace, data, root } = await place(t)
      const linked = join(root, 'linked')
      git(workspace, 'worktree', 'add', '-q', linked)
      const spec = { workspace: linked, data, cwd: linked, env: listEnv(IDENTITY) }
      t.equal(
        await out(spec, 'git log --format=%s; git commit -q --allow-empty -m second; git log --format=%s'),
        'first\nsecond\nfirst',
      )
      const other = join(root, 'other')
      git(root, 'init', '-q', other)
      writeFileSync(join(linked, '.git'), `gitdir: ${join(other, '.git')}\n`)
      t.match(await out(spec, 'ls "$1/.git"', other), /No such file/)
      mkdirSync(join(other, '.git/worktrees/w'), { recursive: true })
      writeFileSync(join(linked, '.git'), `gitdir: ${join(other, '.git/worktrees/w')}\n`)
      t.match(await out(spec, 'ls "$1/.git"', other), /No such file/)
    })

    t.test('of a workspace limited to some folders nothing else is visible', async t => {
      const { workspace, isolated, dir, root, own } = await place(t)
      for (const folder of ['docs/in', 'look', 'src', 'work-too']) mkdirSync(join(dir, folder), { recursive: true })
      for (const file of ['docs/in/a', 'look/b', 'src/secret', 'work-too/c'])
        writeFileSync(join(dir, file), `${file}\n`)
      const spec: WallSpec = {
        ...isolated,
        cwd: join(workspace, 'docs'),
        only: [
          { path: 'docs', access: 'work' },
          { path: 'look', access: 'read' },
        ],
      }
      t.equal(
        await out(spec, 'pwd; find "$1" -type f | sort; ls -A "$1"', workspace),
        [join(workspace, 'docs'), join(workspace, 'docs/in/a'), join(workspace, 'look/b'), 'docs', 'look'].join('\n'),
      )
      t.match(
        await out(
          spec,
          'echo x > in/new && cat in/new; echo x > ../look/new || echo no; echo x > ../new || echo no; mkdir '
            + '../more || echo no',
        ),
        /^x\nno\nno\nno\n/,
      )
      t.same(readdirSync(join(dir, 'docs/in')).sort(), ['a', 'new'])
      t.match(
        await out(
          spec,
          'git log; git -C .. log; git --git-dir="$1/.git" log; git --git-dir="$2" log',
          workspace,
          join(workspace, '../data/git/0'),
        ),
        /not a git repository/,
      )
      const link = join(root, 'elsewhere')
      git(workspace, 'clone', '-q', '--bare', workspace, link)
      const far: WallSpec = { ...spec, copy: { dir, gitdirs: [{ path: '', common: link, own }] } }
      t.match(await out(far, 'ls -A "$1"', link), /No such file/, 'a history outside is hidden too')
      t.equal(await out({ ...spec, cwd: '/', only: [] }, 'ls -A "$1"', workspace), '')
      rmSync(join(dir, 'docs'), { recursive: true })
      execFileSync('ln', ['-s', 'src', join(dir, 'docs')])
      t.equal(
        await out({ ...spec, cwd: '/' }, 'ls -A "$1"', workspace),
        'look',
        'a link in place of a folder is not followed',
      )
    })

    t.test('only a repository that is reached completely keeps its history', async t => {
      const {
        workspace,
        data,
        shared,
        dir,
        gitdirs: [root],
      } = await place(t)
      const site = join(workspace, 'site')
      mkdirSync(site)
      git(site, 'init', '-q', '-b', 'main')
      writeFileSync(join(site, 'page'), 'page\n')
      git(site, 'add', '-A')
      git(site, 'commit', '-qm', 'the page')
      const gitdirs = [root!, await copyOf(site, join(dir, 'site'), join(data, 'git-of', 'site'), { path: 'site' })]
      const spec = (access: 'read' | 'work'): WallSpec => ({
        ...shared,
        cwd: join(workspace, 'site'),
        copy: { dir, gitdirs },
        only: [{ path: 'site', access }],
      })
      t.equal(
        await out(
          spec('work'),
          'git log --format=%s; echo more >> page; git commit -qam second; git log --format=%s; ls -A ..',
        ),
        'the page\nsecond\nthe page\nsite',
      )
      t.match(await out(spec('read'), 'cat page; git log'), /more\n.*not a git repository/s)
      t.ok(data)
    })

    t.test('outside the repositories of a copy the workspace is visible, read-only', async t => {
      const { root, data, dir, shared } = await place(t)
      const workspace = join(root, 'wide')
      const site = join(workspace, 'sites', 'one')
      mkdirSync(site, { recursive: true })
      git(site, 'init', '-q', '-b', 'main')
      writeFileSync(join(site, 'page'), 'page\n')
      git(site, 'add', '-A')
      git(site, 'commit', '-qm', 'the page')
      writeFileSync(join(workspace, 'plan'), 'plan\n')
      const copy = {
        dir: join(dir, 'wide'),
        gitdirs: [await copyOf(site, join(dir, 'wide/sites/one'), join(data, 'git-of', 'one'), { path: 'sites/one' })],
      }
      const spec: WallSpec = { ...shared, workspace, cwd: workspace, copy }
      const tries =
        'cat plan; for p in plan x sites/x; do echo lost > $p; done; mv sites gone; mkdir sites/two; echo more > '
        + 'sites/one/page; echo $?; git -C sites/one commit -qam second; ls . sites'
      t.match(
        await out(spec, `(${tries}) 2>&1 | sed 's/.*Read-only.*/read-only/'`),
        /^plan\n(read-only\n){5}0\n\.:\nplan\nsites\n\nsites:\none$/,
      )
      t.equal(readFileSync(join(site, 'page'), 'utf8'), 'page\n', 'the repository is that of the copy')
      const only = (path: string) =>
        out(
          { ...spec, only: [{ path, access: 'work' }] },
          'cat plan sites/one/page 2>/dev/null; echo x > sites/x; echo y > sites/one/y; ls sites/one',
        )
      t.match(await only('sites'), /^more\n.*Read-only file system\npage\ny$|^more\npage\ny.*Read-only file system/s)
      t.match(await only('plan'), /^plan\n/)
      rmSync(site, { recursive: true })
      const empty = join(root, 'empty')
      mkdirSync(empty)
      t.equal(
        await out({ ...spec, copy: { dir: empty, gitdirs: [] }, ownSandbox: true }, 'ls -A'),
        '',
        'a copy without a repository shows nothing of it',
      )
    })

    t.test('other processes are hidden', async t => {
      const { shared } = await place(t)
      t.equal(
        await out(
          shared,
          'for p in /proc/[0-9]*; do tr "\\0" " " < $p/cmdline 2>/dev/null | cut -c1-7; done | sort -u | grep '
            + 'node; echo done',
        ),
        'done',
      )
      t.equal(
        await out(shared, 'ls -d "/proc/$1" 2>/dev/null; kill -0 "$1" 2>/dev/null; echo $?', String(process.pid)),
        '1',
      )
    })

    t.test('the environment is exactly the given one', async t => {
      const { shared } = await place(t)
      process.env.DAEMON_ONLY = 'secret'
      t.teardown(() => delete process.env.DAEMON_ONLY)
      const env = await out({ ...shared, env: { PATH: process.env.PATH!, MARK: 'here', LD_PRELOAD: '' } }, 'env -0')
      // The shell adds its own variables, and so does the test runner to every process.
      const names = env
        .split('\0')
        .map(line => line.split('=')[0] ?? '')
        .filter(name => !/^(|PWD|_|SHLVL|OLDPWD|NODE_OPTIONS|_TAPJS.*)$/.test(name))
      t.same(names.sort(), ['LD_PRELOAD', 'MARK', 'PATH'])
      const { args } = await walled(shared, 'true', [], kind)
      t.notMatch(args.join(' '), 'MARK', 'no variable is passed as an argument')
    })

    t.test('there are no capabilities and no way to mount or unmount', async t => {
      const { shared, data } = await place(t)
      t.match(await out(shared, 'grep CapEff /proc/self/status'), /0{16}/)
      t.match(await out(shared, 'grep NoNewPrivs /proc/self/status'), /1/)
      t.not((await sh(shared, 'umount -l "$1"', data)).code, 0)
      t.not((await sh(shared, 'mount -o remount,rw,bind "$1"', data)).code, 0)
      t.not((await sh(shared, 'mount -t tmpfs x "$1"', shared.workspace)).code, 0)
      const nested =
        'unshare --user --keep-caps --mount sh -c \'umount -l "$1" || umount -l "$1"; ls -A "$1"\' sh "$1" '
        + '2>/dev/null; true'
      t.equal(await out(shared, nested, data), '', 'also not in its own user namespace')
      t.equal(await out(shared, nested.replace('--user', '--user --map-user=1000'), data), '')
      t.equal(await out(shared, nested.replace('--user', '--user --map-root-user'), data), '')
    })

    t.test('the kernel and the disks cannot be reached through files', async t => {
      const { shared } = await place(t)
      const refused = /Read-only|Permission|nonexistent/
      // Opened for appending and closed again: a wall that fails here must not change the machine of the test.
      t.match(await out(shared, ': >> /proc/sys/kernel/core_pattern'), refused)
      t.match(await out(shared, ': >> /proc/sysrq-trigger'), refused)
      t.match(await out(shared, ': >> /sys/kernel/uevent_helper'), refused)
      t.match(await out(shared, ': >> /sys/kernel/profiling'), refused)
      t.equal(await out(shared, 'ls /dev | grep -E "^(vd|sd|nvme|mem|kmsg|loop)"; true'), '')
      t.equal(await out(shared, 'echo x > /dev/null; head -c 4 /dev/zero | wc -c'), '4')
    })

    t.test('the program does not run as the first process, and its exit code is passed on', async t => {
      const { shared } = await place(t)
      t.not(await out(shared, 'echo $$'), '1')
      t.equal((await sh(shared, 'exit 7')).code, 7)
    })

    t.test('a closed socket is not there, also if its folder is visible', async t => {
      const { shared } = await place(t)
      // A socket's path is short, a test folder's is not.
      const folder = mkdtempSync('/tmp/wall-')
      t.teardown(() => rmSync(folder, { recursive: true }))
      const path = join(folder, 's')
      const server = createServer(socket => socket.end('hello'))
      await new Promise<void>(resolve => server.listen(path, resolve))
      t.teardown(() => server.close())
      const ask =
        'require("node:net").connect(process.argv[1]).on("data", d => console.log(String(d))).on("error", e => '
        + 'console.log(e.code))'
      const say = async (spec: WallSpec) =>
        (await runWalled(spec, process.execPath, ['-e', ask, path], { timeoutMs: 20_000 }, kind)).stdout
          .toString()
          .trim()
      const grants = { read: [folder], write: [] }
      t.equal(await say(shared), 'ENOENT')
      t.equal(await say({ ...shared, grants }), 'hello')
      t.equal(await say({ ...shared, grants, hide: [path] }), 'ENOENT')
    })

    t.test('a closed folder inside the workspace or a visible folder is empty and cannot be moved', async t => {
      for (const at of ['work/a/closed', 'shown/closed']) {
        const { root, shared, workspace } = await place(t)
        const folder = join(root, at)
        mkdirSync(folder, { recursive: true })
        writeFileSync(join(folder, 'key'), 'a key\n')
        const spec: WallSpec = { ...shared, hide: [folder], grants: { read: [join(root, 'shown')], write: [] } }
        t.match(
          await out(
            spec,
            'ls -A "$1"; mv "$(dirname "$1")" "$2/x"; mv "$1" "$2/y"; ls -A "$1"; cat "$2"/*/key "$2"/*/*/key',
            folder,
            workspace,
          ),
          /^(?!.*a key)/s,
        )
        t.equal(readFileSync(join(folder, 'key'), 'utf8'), 'a key\n')
      }
    })

    t.test('.sandbox is read-only except for named paths', async t => {
      const { shared, workspace } = await place(t)
      mkdirSync(join(workspace, '.sandbox/x'))
      t.match(await out(shared, 'echo x > .sandbox/settings.json'), /Read-only/)
      t.match(await out(shared, 'mv .sandbox other'), /busy|Read-only/i)
      t.equal(await out({ ...shared, writable: [join(workspace, '.sandbox/x')] }, 'echo x > .sandbox/x/y'), '')
      t.equal(readFileSync(join(workspace, '.sandbox/x/y'), 'utf8'), 'x\n')
    })

    t.test('without a copy the shared tree is writable', async t => {
      const { shared, workspace } = await place(t)
      t.equal(await out(shared, 'echo two > a.txt; git status --porcelain -uno'), 'M a.txt')
      t.equal(readFileSync(join(workspace, 'a.txt'), 'utf8'), 'two\n')
    })

    t.test('a write by an absolute path of the workspace lands in the copy', async t => {
      const { isolated, workspace, dir } = await place(t)
      t.equal(await out(isolated, 'echo two > "$1/a.txt"; pwd', workspace), workspace)
      t.equal(readFileSync(join(dir, 'a.txt'), 'utf8'), 'two\n')
      t.equal(git(workspace, 'status', '--porcelain', '--untracked-files=no'), '')
    })

    t.test('git works in the copy and commits on its own branch, which the repository does not have', async t => {
      const { isolated, workspace, common, dir } = await place(t)
      const before = bytesOf(common)
      t.equal(
        await out(
          isolated,
          'echo two > a.txt && git commit -qam second && git status --porcelain && git log --format=%s',
        ),
        'second\nfirst',
      )
      t.equal(git(dir, 'log', '--format=%s', '-1', 'agent/c-1'), 'second')
      t.equal(git(workspace, 'log', '--format=%s', '-1', 'agent/c-1'), 'first')
      t.equal(git(dir, 'status', '--porcelain', '--', 'a.txt'), '', 'the copy is also clean from outside')
      t.same(bytesOf(common), before)
    })

    t.test('every ordinary command of git works in the copy', async t => {
      const { isolated, workspace, common, dir } = await place(t)
      git(workspace, 'tag', 'v1')
      git(workspace, 'update-ref', 'refs/remotes/origin/main', 'HEAD')
      const before = bytesOf(common)
      const steps = [
        'echo two > a.txt; git add a.txt; git commit -qm second',
        'git log --oneline main..agent/c-1 | wc -l | grep -qx 1',
        'git checkout -qb side; echo s > s; git add s; git commit -qm side; git checkout -q agent/c-1',
        'git merge -q --no-ff -m merged side',
        'git branch -m side aside; git branch -D aside',
        'echo x >> a.txt; git stash; git stash list | grep -q WIP; git stash pop -q; git checkout -q a.txt',
        'git tag mine; git tag -d mine',
        'git tag -a -m noted noted',
        'git rebase -q --onto main~0 main',
        'git reset -q --hard HEAD~1; git reset -q --hard ORIG_HEAD',
        'git reflog | grep -q reset',
        'git log -g --format=%gs agent/c-1 | grep -q second',
        'git cherry-pick --keep-redundant-commits HEAD; git reset -q --hard HEAD~1',
        'git commit -q --amend -m again',
        'git revert --no-edit HEAD',
        'git gc -q; git gc -q --prune=now',
        'git fsck --strict',
        'git pack-refs --all',
        'git repack -adq',
        'git worktree add -q /tmp/tree && git worktree remove /tmp/tree',
        'git update-ref refs/heads/x HEAD; git branch -d x',
        'git bisect start HEAD HEAD~1; git bisect reset',
        'test -z "$(git status --porcelain)"',
      ]
      for (const step of steps)
        t.equal(await out(isolated, `set -e; { ${step}; } >/tmp/out 2>&1 || { cat /tmp/out; exit 1; }`), '', step)
      t.equal(git(dir, 'fsck', '--strict', '--no-dangling'), '')
      t.same(bytesOf(common), before)
    })

    t.test('no command in the copy can change the repository', async t => {
      const { isolated, workspace, common, data, own, dir } = await place(t)
      const before = bytesOf(common)
      const at = (path: string) => `"${join(data, 'git')}/0.repository/${path}"`
      const refused = [
        'git config filter.x.smudge "touch /tmp/x"',
        `echo "#!/bin/sh" > ${at('hooks/post-checkout')}`,
        `echo x > ${at('info/attributes')}`,
        `echo x > ${at('packed-refs')}`,
        `echo x > ${at('HEAD')}`,
        `echo x > ${at('index')}`,
        `rm -rf ${at('objects')}/*`,
        `find ${at('objects')} -type f -exec sh -c 'chmod u+w "$1" && echo x > "$1"' - {} + 2>/dev/null`,
        `mv ${at('objects')} ${at('other')}`,
        `echo x > ${at('refs/heads/main')}`,
        `rm ${at('refs/heads/main')}`,
        `git --git-dir=${at('')} update-ref refs/heads/main HEAD~0 && git --git-dir=${at('')} tag x`,
        `git --git-dir=${at('')} gc && false`,
        'rm -f .git',
        'echo x > .git',
        'mv .git .was',
        'echo /etc > "$(git rev-parse --git-dir)/objects/info/alternates"',
        'rm -f "$(git rev-parse --git-dir)/objects/info/alternates"',
        'mv "$(git rev-parse --git-dir)/objects" /tmp/objects',
        'mv "$(git rev-parse --git-dir)/objects/info" /tmp/info',
        'echo x > "$(git rev-parse --git-dir)/info/exclude"',
        'mv "$(git rev-parse --git-dir)/config" /tmp/config',
        'mv "$(git rev-parse --git-dir)" "$(git rev-parse --git-dir)".moved',
      ]
      for (const attempt of refused) t.not((await sh(isolated, attempt)).code, 0, attempt)
      await out(
        isolated,
        'git branch -f main HEAD; git tag x; git update-ref refs/heads/agent/c-2 HEAD; git commit -q '
          + '--allow-empty -m second; git push . HEAD:refs/heads/main; echo /etc > "$(git rev-parse '
          + '--git-dir)/commondir"',
      )
      t.same(bytesOf(common), before)
      t.equal(git(workspace, 'status', '--porcelain', '--untracked-files=no'), '')
      t.same(readdirSync(data).sort(), ['checkouts', 'git-of', 'secret', 'wall'])
      t.ok(own && dir)
    })

    t.test('.sandbox of the workspace is shared into the copy', async t => {
      const { isolated } = await place(t)
      t.equal(await out(isolated, 'cat .sandbox/settings.json'), '{}')
      t.match(await out(isolated, 'echo x > .sandbox/settings.json'), /Read-only/)
    })

    t.test('a source that was replaced by a link is refused', async t => {
      const { isolated, common, data, own } = await place(t)
      execFileSync('mv', [join(common, 'objects'), join(common, 'kept')])
      execFileSync('ln', ['-s', data, join(common, 'objects')])
      await t.rejects(sh(isolated, 'true'), { message: /found a link/ })
      execFileSync('rm', [join(common, 'objects')])
      execFileSync('mv', [join(common, 'kept'), join(common, 'objects')])
      execFileSync('mv', [join(own, 'objects'), join(own, 'kept')])
      execFileSync('ln', ['-s', data, join(own, 'objects')])
      await t.rejects(sh(isolated, 'true'), { message: /found a link/ })
    })

    t.test('ending the command ends everything in it', async t => {
      // A unique duration, because other tests and runs search the same processes.
      const seconds = `3571.${process.pid}${kind.length}`
      const { shared, workspace } = await place(t)
      const stop = new AbortController()
      const child = await walled(shared, 'sh', ['-c', `setsid sleep ${seconds} & trap "" TERM; echo up; wait`], kind)
      await t.rejects(
        run(child.program, child.args, {
          cwd: child.cwd,
          env: child.env,
          signal: stop.signal,
          onOutput: () => stop.abort(new Error('stop')),
        }),
        { message: 'stop' },
      )
      const left = () =>
        readdirSync('/proc')
          .filter(pid => /^\d+$/.test(pid))
          .filter(pid => {
            try {
              return readFileSync(`/proc/${pid}/cmdline`, 'utf8') === `sleep\x00${seconds}\x00`
            } catch {
              return false
            }
          })
      for (let i = 0; i < 40 && left().length > 0; i++) await new Promise(resolve => setTimeout(resolve, 25))
      t.same(left(), [])
      t.ok(workspace)
    })

    t.test('ending the command at any moment while its wall is being built leaves nothing behind', async t => {
      const { shared, root } = await place(t)
      const mine = () =>
        readdirSync('/proc')
          .filter(pid => /^\d+$/.test(pid))
          .filter(pid => {
            try {
              return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`MARK=${root}`)
            } catch {
              return false
            }
          })
      const started = Date.now()
      await Promise.all(
        Array.from({ length: 30 }, async (_, moment) => {
          const spec = { ...shared, env: { ...shared.env, MARK: root } }
          const signal = AbortSignal.timeout(moment * 2)
          await t.rejects(
            runWalled(spec, 'sh', ['-c', 'trap "" TERM; sleep 3572'], { signal }, kind),
            { name: 'TimeoutError' },
            `${moment * 2} ms`,
          )
        }),
      )
      t.ok(Date.now() - started < 60_000)
      for (let i = 0; i < 40 && mine().length > 0; i++) await new Promise(resolve => setTimeout(resolve, 25))
      t.same(mine(), [])
    })
  })
}

t.test('without a wall the program is unchanged and reports it', async t => {
  const { isolated, dir } = await place(t)
  writeFileSync(join(dir, 'b'), '')
  const answer = await walled(isolated, 'ls', ['-a'], 'none')
  t.same(answer, { program: 'ls', args: ['-a'], env: isolated.env, cwd: dir, enforced: false })
})

t.test('the kind of wall is one of three', async t => {
  t.ok(['bwrap', 'unshare', 'none'].includes(await wallKind()))
})
