import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { modelServer } from '../../support/servers/model-server.js'
import { runTurn } from '../../support/turns.js'
import { daemonOf } from '../network/user-daemon.js'
import { shellTurn, walled } from '../support.js'
import { USERS } from '../users.js'

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
const SECRET = 'a-file-outside-the-workspace'

/** What takes the place of `pictures/a.png`, by a command in the workspace; `away` is a folder outside. */
const PLACES: { readonly [what: string]: (away: string) => string } = {
  'a link that leads out': away => `ln -s ${away}/a.png pictures/a.png`,
  'a folder on the way that leads out': away => `rm -rf pictures; ln -s ${away} pictures`,
  'a link to the key of the daemon': away => `ln -s ${away}/../d/machine.key pictures/a.png`,
  'a link to a picture that is not attached': () => 'cp other.png pictures/b.png; ln -s b.png pictures/a.png',
  'a pipe': () => 'mkfifo pictures/a.png',
  'a socket': () => `python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('pictures/a.png')"`,
  'a device': () => 'ln -s /dev/zero pictures/a.png',
  'a file of 64 GiB': () => 'truncate -s 64G pictures/a.png',
  'a folder': () => 'mkdir pictures/a.png',
  nothing: () => 'true',
}

for (const [user, uid] of USERS)
  t.test(`${user}: a picture is sent once more only while it is the file that was attached`, walled(), async t => {
    const { client, workspace } = await daemonOf(t, uid, { 'README.md': '# work\n', 'other.png': SECRET })
    const server = await modelServer(t, 'openai', () => ({ text: ['over'] }))
    const { baseUrl } = server.target()
    await client.call('POST /endpoints', { id: 'e', kind: 'server', protocol: 'openai', baseUrl })
    const away = join(workspace, '../away')
    mkdirSync(away)
    writeFileSync(join(away, 'a.png'), SECRET)
    const put = `rm -rf pictures && mkdir pictures && echo ${PNG} | base64 -d > pictures/a.png && echo MADE`
    for (const [at, [what, change]] of Object.entries(PLACES).entries()) {
      await t.test(what, async t => {
        t.same(await shellTurn(client, 'tree', [put]), ['MADE'])
        const turn = { agent: 'endpoint/e', model: 'm', permissionMode: 'bypassPermissions' }
        await runTurn(client, `c-${at}`, 'look', { ...turn, attachments: ['pictures/a.png'] })
        t.ok(server.requests.at(-1)!.text.includes(PNG), 'the model gets the picture')
        await shellTurn(client, 'tree', [`rm -f pictures/a.png; ${change(away)}`])
        const frames = await runTurn(client, `c-${at}`, 'again', turn)
        t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
        const { text } = server.requests.at(-1)!
        t.notMatch(text, new RegExp(`${Buffer.from(SECRET).toString('base64')}|;base64,`), 'no bytes of another file')
        t.match(text, /pictures\/a\.png can no longer be read/)
      })
    }
  })
