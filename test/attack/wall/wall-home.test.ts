import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { bytesOf, outside, shellTurn, walled } from '../support.js'

/** Unlike `mv`, it does not copy if a folder cannot be renamed. */
const RENAME = `${process.execPath} -e 'require("fs").renameSync(process.argv[1], process.argv[2])'`
const SECRET = 'a secret of the person'

/**
 * A daemon in the usual layout: the workspace, its data folder and its settings in one home folder, with another
 * daemon's data beside it.
 */
const place = async (t: Test) => {
  const home = join(folderOf(t), 'home')
  const workspace = join(home, 'code/project')
  makeWorkspace(workspace, { 'README.md': '# work\n', '.sandbox/config/settings.json': '{"version":1}\n' })
  const state = join(home, '.local/state')
  const data = join(state, 'sandbox/0123456789abcdef')
  const files = [
    '.bashrc',
    '.ssh/authorized_keys',
    '.gitconfig',
    '.config/systemd/user/x.service',
    '.config/sandbox.json',
    'elsewhere/other-data/machine.key',
    'code/other/notes.txt',
  ]
  for (const file of files) {
    mkdirSync(dirname(join(home, file)), { recursive: true })
    writeFileSync(join(home, file), `${SECRET}\n`)
  }
  writeFileSync(join(home, '.config/sandbox.json'), '{}')
  writeFileSync(
    join(home, '.gitconfig'),
    '[user]\n\tname = Ann Example\n\temail = ann@example.org\n[alias]\n\tx = !touch /tmp/ran\n',
  )
  const daemon = await spawnDaemon(t, {
    workspace,
    data,
    args: ['--config', join(home, '.config/sandbox.json')],
    env: { HOME: home, XDG_STATE_HOME: state },
  })
  return { ...daemon, home, state, files: files.map(file => join(home, file)) }
}

const FORMS = [
  ['shared', {}],
  ['alone', { isolated: true }],
] as const

t.test('no turn moves a parent of the data folder, and the next turn reads nothing of it', walled(), async t => {
  const { client, home, state, data, workspace } = await place(t)
  t.match(outside(`cat ${data}/machine.key | wc -c`, workspace), /^[1-9]/, 'outside the wall it exists')
  for (const [conversation, options] of FORMS) {
    const moves = [state, join(home, '.local'), home, dirname(workspace)].flatMap(folder =>
      [`${folder}-2`, '/tmp/taken'].map(to => `${RENAME} ${folder} ${to} && echo MOVED`),
    )
    const reads = [
      `cat ${data}/machine.key && echo READ`,
      `ls ${data}/files && echo READ`,
      `ls ${state}-2/sandbox && echo READ`,
    ]
    for (const round of [1, 2]) {
      const answers = await shellTurn(client, conversation, [...moves, ...reads], options)
      for (const [at, answer] of answers.entries())
        t.notMatch(answer, /MOVED|READ/, `${conversation}, turn ${round}: ${[...moves, ...reads][at]}`)
    }
  }
  t.ok((await client.call('GET /system/sessions')).sessions.length > 0, 'the daemon keeps running')
})

t.test(
  'a turn reads nothing of the person except the name and e-mail for git, and leaves nothing that runs for the '
    + 'person later',
  walled(),
  async t => {
    const { client, home, files, workspace } = await place(t)
    const before = bytesOf(home, /^(code\/project|\.local\/state)(\/|$)/)
    for (const [conversation, options] of FORMS) {
      const reads = files.map(file => `cat ${file} && echo READ`)
      const writes = [
        ...files,
        join(home, '.profile'),
        join(home, '.local/bin/git'),
        join(home, '.config/git/config'),
      ].map(file => `mkdir -p ${dirname(file)} && echo x >> ${file} && echo WROTE`)
      const answers = await shellTurn(client, conversation, [...reads, ...writes], options)
      // Below /tmp it writes into the folders of its own /tmp.
      const done = home.startsWith('/tmp/') ? /READ|a secret/ : /READ|WROTE|a secret/
      for (const [at, answer] of answers.entries())
        t.notMatch(answer, done, `${conversation}: ${[...reads, ...writes][at]}`)
      t.same(
        await shellTurn(
          client,
          conversation,
          ['git config user.name; git config user.email; git config alias.x || echo no alias'],
          options,
        ),
        ['Ann Example\nann@example.org\nno alias'],
      )
      const [own] = await shellTurn(
        client,
        conversation,
        ['echo kept > ~/.bashrc && echo kept > /tmp/kept && echo ~'],
        options,
      )
      t.same(
        await shellTurn(client, conversation, ['cat ~/.bashrc /tmp/kept'], options),
        ['kept\nkept'],
        'its own home folder and /tmp are kept',
      )
      t.not(own, home)
    }
    const [other] = await shellTurn(client, 'third', ['cat ~/.bashrc /tmp/kept'])
    t.notMatch(other, /^kept/m, 'they belong to one conversation')
    t.strictSame(bytesOf(home, /^(code\/project|\.local\/state)(\/|$)/), before)
    t.equal(readFileSync(join(workspace, '.sandbox/config/settings.json'), 'utf8'), '{"version":1}\n')
  },
)

t.test('the home folder of turns is removed with the conversation', walled(), async t => {
  const { client, data } = await place(t)
  await shellTurn(client, 'alone', ['echo kept > ~/kept'], { isolated: true })
  const folder = join(data, 'homes/conversations')
  t.equal(readFileSync(join(folder, 'alone/home/kept'), 'utf8'), 'kept\n')
  await client.call('POST /agents/{id}/discard', { id: 'alone' })
  t.throws(() => readFileSync(join(folder, 'alone/home/kept')))
})
