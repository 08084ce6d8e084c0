import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { homeEnv } from '../../sdk/node/wall/home.js'
import { attach } from '../plugins/system/terminals/terminals-support.js'
import { endTerminals, folderOf, inGit, makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { runTurn } from '../support/turns.js'
import { answersOf, runs, walled } from './support.js'

const SECRET = 'canary-of-the-daemon'
/** Variables in the environment of a daemon that are secret or change the behaviour of programs. */
const NAMES = [
  'AWS_SECRET_ACCESS_KEY',
  'GITHUB_TOKEN',
  'NPM_TOKEN',
  'SANDBOX_TOKEN',
  'SANDBOX_PASSPHRASE',
  'DATABASE_URL',
  'SSH_AUTH_SOCK',
  'GIT_SSH_COMMAND',
  'GIT_ASKPASS',
  'GPG_AGENT_INFO',
  'DBUS_SESSION_BUS_ADDRESS',
  'XDG_RUNTIME_DIR',
  'KUBECONFIG',
  'DOCKER_HOST',
  'BASH_ENV',
  'ENV',
  'PROMPT_COMMAND',
  'PYTHONPATH',
  'PERL5LIB',
  'TMUX',
  'TMUX_TMPDIR',
  'TERMINFO',
  'HISTFILE',
  'HTTP_PROXY',
  'A_SECRET_NOBODY_LISTED',
]
/** The variables that the daemon passes on, and those that shells and git add. */
const LISTED = new RegExp(
  String.raw`^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TERM|COLORTERM|TZ|TMPDIR|PWD|OLDPWD|SHLVL|_`
    + String.raw`|GIT_\w+|TAP\w*|_TAPJS\w*|NODE_OPTIONS)$`,
)
/** The variables of toolchains in the home folder. */
const TOOLCHAINS =
  /^(?:NVM_DIR|VOLTA_HOME|ASDF_DATA_DIR|MISE_DATA_DIR|FNM_DIR|RUSTUP_HOME|PYENV_ROOT|RBENV_ROOT|SDKMAN_DIR|PNPM_HOME)$/
/** The variables that point programs to their own home folder instead of the person's. */
const OF_HOME = new Set(Object.keys(homeEnv({ dir: '/h', tmp: '/t', caches: '/c', gitconfig: '/g' }, {})))
/** The variables that name the proxy of a conversation's network. */
const WAY_OUT = /^(?:(?:https?|all|no)_proxy|NODE_USE_ENV_PROXY)$/i
/** What commands of a turn have besides: with it they propose and ask, and no program beside them does. */
const OF_COMMANDS = new RegExp(`${WAY_OUT.source}|^SANDBOX_(?:DAEMON|TURN_TOKEN)$`, 'i')
const ALL = 'for file in /proc/[0-9]*/environ; do tr "\\0" "\\n" < $file; done 2>/dev/null; env'

t.test('only the listed variables of the daemon reach a turn, a terminal or a git child', walled(), async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace, {
    'README.md': '# work\n',
    '.gitattributes': '*.spy filter=spy\n',
    '.gitignore': '/seen-by-git.*\n',
  })
  // A filter is a program of the repository: git runs it whenever it reads such a file, several at once.
  inGit(workspace, 'config', 'filter.spy.clean', `(${ALL}) > seen-by-git.$$; cat`)
  t.teardown(() => endTerminals(data))
  const daemon = await spawnDaemon(t, {
    workspace,
    data,
    env: { ...Object.fromEntries(NAMES.map(name => [name, SECRET])), HOME: folder, SHELL: '/bin/sh' },
  })
  const { client } = daemon
  const check = (where: string, text: string, own = WAY_OUT): void => {
    t.match(text, /^PATH=/m, `${where}: the environment was printed`)
    t.notMatch(text, SECRET, where)
    const names = text.split('\n').flatMap(line => /^([A-Za-z_]\w*)=/.exec(line)?.[1] ?? [])
    t.same(
      names.filter(name => NAMES.includes(name) && !/^GIT_ASKPASS$/.test(name) && !own.test(name)),
      [],
      where,
    )
    t.same(
      [...new Set(names)].filter(
        name => !LISTED.test(name) && !TOOLCHAINS.test(name) && !OF_HOME.has(name) && !own.test(name),
      ),
      [],
      `${where}: only listed variables`,
    )
  }
  const script =
    `${runs(ALL)}\ncode\n| console.log(Object.entries(process.env).map(each => `
    + `each.join('=')).join('\\n'))\nwrite a.spy\n| a`
  for (const [conversation, options] of [
    ['shared', {}],
    ['alone', { isolated: true }],
  ] as const) {
    const [shell, code] = answersOf(await runTurn(client, conversation, script, options))
    check(`the shell of ${conversation}`, shell!.text, OF_COMMANDS)
    check(`the code of ${conversation}`, code!.text, OF_COMMANDS)
  }
  await client.call('GET /agents/{id}/diff', { id: 'alone' })
  const [look] = answersOf(await runTurn(client, 'alone', runs('cat seen-by-git.*')))
  check('a git child', look!.text)

  await client.call('POST /system/terminals', { name: 'web-a' })
  const one = await attach(t, daemon, 'web-a', '&cols=400')
  one.type(`(${ALL}) > seen-in-terminal; echo do-"ne"\r`)
  await one.shows(/do-ne/)
  check('a terminal', readFileSync(join(workspace, 'seen-in-terminal'), 'utf8'), /^$/)
})
