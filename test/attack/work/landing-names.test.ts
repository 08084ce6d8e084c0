import { lstatSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Refusal } from '../../../sdk/refusal.js'
import { daemonWith, inGit } from '../../support/daemon.js'
import { runTurn } from '../../support/turns.js'

const COMMIT = 'git -c user.name=a -c user.email=a@b.c commit -q'

/** What a turn does to its private copy so that something lands unseen, lands elsewhere, or nothing is shown. */
const ATTEMPTS: { readonly [what: string]: readonly string[] } = {
  'a repository without a commit': ['git init -q nested', 'echo x > nested/f'],
  'a repository with a commit': ['git init -q nested', `cd nested && echo x > f && git add f && ${COMMIT} -m x`],
  'a staged repository': ['git init -q nested', `cd nested && ${COMMIT} --allow-empty -m x`, 'git add nested'],
  'the name of the git folder in capitals': ['printf x > .GIT'],
  'a folder with the name of the git folder': ['mkdir -p sub/.Git/hooks', 'echo evil > sub/.Git/hooks/post-checkout'],
  'a short name of the git folder': ["printf x > 'git~1'"],
  'an invisible character in the name of the git folder': ['printf x > "$(printf \'.g\\342\\200\\214it\')"'],
  'the folder of the sandbox in capitals': ['mkdir -p .SANDBOX/config', 'echo {} > .SANDBOX/config/settings.json'],
  'names with a backslash': ["mkdir 'd\\e'", "printf x > 'd\\e/f'", "printf x > 'a\\b'"],
  'names with a line break, quotes and options': [
    'printf x > "$(printf \'a\\nb\')"',
    "printf x > '-rf'",
    `printf x > 'q"q'`,
  ],
  'names that differ in case': ['printf 1 > Same', 'printf 2 > same'],
  'names that differ in composition': [
    'printf 1 > "$(printf \'\\303\\251\')"',
    'printf 2 > "$(printf \'e\\314\\201\')"',
  ],
  'a name that is not valid Unicode': ['printf x > "$(printf \'bad\\377\')"'],
  'links that lead out': ['ln -s /etc/passwd out', 'ln -s ../../.. up', 'ln -s .git/hooks hooks'],
  'a folder that became a link': ['rm -rf sub', 'ln -s /tmp sub'],
  'a fifo in the place of a file': ['rm app.sh', 'mkfifo app.sh'],
  'a new fifo': ['mkfifo pipe'],
  'a pointer to a commit': [
    'git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),module',
    'printf \'[submodule "module"]\\npath=module\\nurl=ext::sh -c id\\n\' > .gitmodules',
  ],
  'a file that the index calls unchanged': ['git update-index --assume-unchanged app.sh', 'echo evil > app.sh'],
  'a file that the index skips': ['git update-index --skip-worktree app.sh', 'echo evil > app.sh'],
  'an index of another tree': ['git read-tree --empty'],
  'a damaged index': ['head -c 100 /dev/zero > "$(git rev-parse --git-dir)/index"'],
  'attributes that call text binary': ["echo '*.sh -diff' > .gitattributes", 'echo evil > app.sh'],
  'an encoding': ["echo '*.sh working-tree-encoding=UTF-16' > .gitattributes"],
  'a filter': ["echo '*.sh filter=x' > .gitattributes", "git config filter.x.clean 'echo evil'", 'touch app.sh'],
  'line ends': ["echo '* text eol=crlf' > .gitattributes", "printf 'a\\r\\nb\\r\\n' > crlf.txt"],
  'a replaced object': [
    'echo benign > r.sh && git replace $(echo evil | git hash-object -w --stdin) $(git hash-object -w r.sh)',
    'echo evil > r.sh',
  ],
  'a graft': [
    'mkdir -p "$(git rev-parse --git-dir)/info"',
    'git rev-parse HEAD > "$(git rev-parse --git-dir)/info/grafts"',
  ],
  'another branch': ['git checkout -q -b other', 'echo evil > app.sh', `${COMMIT} -am x`],
  'a file that is only to be added': ['echo evil > later.txt', 'git add -N later.txt'],
  'a file that is to be added and became a link': ['echo x > later', 'git add -N later', 'ln -sf /etc/passwd later'],
  'files that the index calls unchanged and skips, gone': [
    'git update-index --assume-unchanged app.sh',
    'git update-index --skip-worktree sub/x.txt',
    'rm app.sh sub/x.txt',
  ],
  'a file that the index calls unchanged, a pipe': [
    'git update-index --assume-unchanged app.sh',
    'rm app.sh && mkfifo app.sh',
  ],
  'a folder that differs in case': ['mkdir SUB', 'echo evil > SUB/x.txt'],
  'a folder that differs in composition': [
    'mkdir "$(printf \'\\303\\251\')" "$(printf \'e\\314\\201\')"',
    'printf 1 > "$(printf \'\\303\\251\')/f"',
    'printf 2 > "$(printf \'e\\314\\201\')/f"',
  ],
  'names that only ligatures and full width tell apart': [
    'printf 1 > "$(printf \'\\357\\254\\201x\')"',
    'printf 2 > fix',
  ],
  'settings of the index that hide what changed': [
    'git config core.untrackedCache true',
    'git config core.ignoreStat true',
    'git config core.checkStat minimal',
    'git config core.trustctime false',
    'echo evil > app.sh',
  ],
  'another HEAD': ['git checkout -q --detach', 'echo evil > app.sh'],
}

const kindOf = (path: string): string => {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat === undefined ? 'absent' : stat.isSymbolicLink() ? 'link' : stat.isFile() ? 'file' : 'other'
}

/** Attributes that land give files of the workspace their line ends. */
const lines = (text: string): string => text.replaceAll('\r\n', '\n')

/** The attempts after which the rest of the work has to land. */
const BESIDE = 9

t.setTimeout(300_000)

t.test('what lands is what was shown, whatever a turn does to its copy', async t => {
  const { client, workspace } = await daemonWith(t, ['system', 'agent', 'agents'], {
    files: { 'README.md': 'hi\n', 'app.sh': 'echo safe\n', 'sub/x.txt': '1\n' },
  })
  const git = () => [readFileSync(join(workspace, '.git/config'), 'utf8'), readdirSync(join(workspace, '.git/hooks'))]
  const [before, head] = [git(), inGit(workspace, 'rev-parse', 'HEAD')]
  for (const [at, [what, commands]] of Object.entries(ATTEMPTS).entries()) {
    await t.test(what, async t => {
      const id = `c-${at}`
      const prompt = [...commands, 'echo plain > plain.txt'].map(each => `run ${each.replaceAll('$', '$$$$')}`)
      await runTurn(client, id, prompt.join('\n'), { isolated: true })
      const { repos } = await client.call('GET /agents/{id}/diff', { id })
      const shown = new Map<string, string | undefined>()
      for (const { repo, changes } of repos) {
        for (const { path, from } of changes) {
          if (from !== undefined) shown.set(from, undefined)
          const sides = await client
            .call('GET /agents/{id}/{repo}/file-diff', { id, repo, path })
            .catch(() => undefined)
          shown.set(path, sides?.after)
        }
      }
      const expect = Object.fromEntries(repos.map(({ repo, tip }) => [repo, tip]))
      const result = await client.call('POST /agents/{id}/land', { id, expect }).catch((error: unknown) => error)
      if (result instanceof Refusal) t.ok([409, 424].includes(result.status), result.message)
      if (at < BESIDE) {
        t.match(result, { landed: true }, 'the other work lands')
        t.equal(shown.get('plain.txt'), 'plain\n')
        t.equal(readFileSync(join(workspace, 'plain.txt'), 'utf8'), 'plain\n')
      }
      const changed = inGit(workspace, 'status', '--porcelain', '-z', '-uall', '--no-renames')
        .split('\0')
        .flatMap(line => (line === '' ? [] : [line.slice(3)]))
        .filter(path => !path.startsWith('.sandbox/'))
      for (const path of changed) {
        t.ok(shown.has(path), `${JSON.stringify(path)} was shown`)
        const [kind, text] = [kindOf(join(workspace, path)), shown.get(path)]
        if (text !== undefined && kind === 'file')
          t.equal(
            lines(readFileSync(join(workspace, path), 'utf8')),
            lines(text),
            `${JSON.stringify(path)} is as shown`,
          )
        t.not(kind, 'other', path)
      }
      t.same(git(), before, 'settings and hooks of the repository are as they were')
      t.equal(inGit(workspace, 'rev-parse', 'HEAD'), head)
      inGit(workspace, 'reset', '-q', '--hard')
      inGit(workspace, 'clean', '-fdq', '-e', '.sandbox')
    })
  }
})
