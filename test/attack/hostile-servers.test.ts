import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import ssh2 from 'ssh2'
import t, { type Test } from 'tap'
import type { DiskTarget } from '../../plugins/disks/contract.js'
import { add, vaultFake } from '../plugins/capabilities/support.js'
import { daemonWith, folderOf } from '../support/daemon.js'
import { passwordServer } from '../support/servers/password-server.js'
import { sshKey, withSshd } from '../support/ssh-server.js'
import { shellTurn, walled } from './support.js'

const listening = async (t: Test, server: Server | ssh2.Server): Promise<number> => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  return (server.address() as AddressInfo).port
}

const GOOD = 'the-password-of-the-good-server-1234'
const EVIL = 'the-password-of-the-hostile-server-99'

t.test(
  'a hostile ssh server asks in every way for the password of another server, and gets its own alone',
  { ...walled(), ...withSshd() },
  async t => {
    const { client, ...daemon } = await daemonWith(t, ['agent', 'agents', 'capabilities'], { fakes: vaultFake().fakes })
    const good = await passwordServer(t, folderOf(t), 'ada', GOOD)
    const name = `ada@[localhost]:${good.port}`
    const prompts = [
      'Password: ',
      `${name}'s password: `,
      `(${name}) Password: `,
      `) (${name}) `,
      `x\n${name}'s password: `,
      `\r(${name}) Password: `,
      `\b\b\b\b${name}'s password: `,
      `\u001b[2K\r${name}'s password: `,
      `\u202e${name}'s password: `,
      `* | '${name}'*) `,
    ]
    const told: string[] = []
    let asked = prompts
    const port = await listening(
      t,
      new ssh2.Server({ hostKeys: [sshKey(folderOf(t), 'evil-host').private] }, far => {
        far.on('error', () => {})
        far.on('authentication', context => {
          if (context.method === 'password') {
            told.push(context.password)
            return asked.length > 0 ? context.reject(['keyboard-interactive']) : context.accept()
          }
          if (context.method !== 'keyboard-interactive') return context.reject(['keyboard-interactive', 'password'])
          const [prompt = ''] = asked
          asked = asked.slice(1)
          return context.prompt([{ prompt, echo: false }], prompt, prompt, answers => {
            told.push(...answers)
            return context.reject(['keyboard-interactive', 'password'])
          })
        })
        far.on('session', accept =>
          accept().on('exec', take => {
            const stream = take()
            stream.exit(0)
            stream.end()
          }),
        )
      }),
    )
    const server = (id: string, at: number, user: string, password: string) =>
      add({ client }, { id, kind: 'ssh', config: { host: 'localhost', port: at, user, auth: 'password', password } })
    await server('good', good.port, 'ada', GOOD)
    asked = []
    await server('evil', port, 'eve', EVIL)
    told.length = 0
    for (const prompt of prompts) {
      asked = [prompt]
      await shellTurn(client, 'c', ['ssh -o NumberOfPasswordPrompts=3 evil true; true'])
    }
    t.ok(told.length >= prompts.length, `${told.length} answers`)
    t.same(
      told.filter(answer => answer.includes(GOOD)),
      [],
    )
    const [fine] = await shellTurn(client, 'c', ['ssh good echo there'])
    t.match(fine, /ran echo there/, 'the good one is still reached')
    t.notMatch(daemon.logged.join('\n'), /the-password-of/)
  },
)

const ODD_NAME = '\u001b]0;owned\u0007\u202egnp\u0000.exe\u2028'
const FOLDER = '<propstat><prop><resourcetype><collection/></resourcetype></prop></propstat>'
const RESPONSE = `<response><href>/${encodeURIComponent(ODD_NAME)}/</href>${FOLDER}</response>`
const LISTING = `<multistatus xmlns="DAV:">${RESPONSE.repeat(3000)}</multistatus>`
const head = (status: string, more = '') => `HTTP/1.1 ${status}\r\n${more}`

/** What a hostile server sends to each client: `first` once, then `endless` again and again. */
const HOSTILE: { readonly [how: string]: (port: number) => { first?: string; endless?: string; closes?: boolean } } = {
  silent: () => ({}),
  'closes at once': () => ({ closes: true }),
  'endless zeros': () => ({ endless: '\0'.repeat(65_536) }),
  'endless text': () => ({ endless: 'a'.repeat(65_536) }),
  'endless lines': () => ({ endless: 'SSH-2.0-x\u001b[2J\r\n'.repeat(4096) }),
  'endless headers': () => ({ first: head('207 Multi-Status'), endless: `x-a: ${'b'.repeat(1000)}\r\n`.repeat(64) }),
  'endless body': () => ({ first: head('207 Multi-Status', '\r\n'), endless: '<a>'.repeat(20_000) }),
  'endless chunks': () => ({
    first: head('207 Multi-Status', 'transfer-encoding: chunked\r\n\r\n'),
    endless: `1000\r\n${'a'.repeat(4096)}\r\n`.repeat(16),
  }),
  'a bomb of entities': () => ({
    first: head(
      '207 Multi-Status',
      'connection: close\r\n\r\n<!DOCTYPE a [<!ENTITY b "bbbbbbbb"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>',
    ),
    closes: true,
  }),
  'odd names': () => ({ first: head('207 Multi-Status', `connection: close\r\n\r\n${LISTING}`), closes: true }),
  'a redirect to the daemon': port => ({
    first: head('302 Found', `location: http://127.0.0.1:${port}/secrets\r\ncontent-length: 0\r\n\r\n`),
    closes: true,
  }),
  'two answers at once': () => ({
    first: `${head('200 OK', 'content-length: 0\r\n\r\n')}${head('207 X', 'content-length: 0\r\n\r\n')}`,
    closes: true,
  }),
  'a status of an escape': () => ({
    first: head('401 \u001b[31mred\u202e', 'www-authenticate: \u0007\r\n\r\n'),
    closes: true,
  }),
  'an SMB answer that claims 16 MiB': () => ({
    first: '\u0000\u00ff\u00ff\u00ff\u00feSMB',
    endless: 'x'.repeat(65_536),
  }),
  'an NFS answer that claims 2 GiB': () => ({ first: '\u00ff\u00ff\u00ff\u00ff', endless: '\0'.repeat(65_536) }),
}

const hostileServer = async (t: Test, how: ReturnType<(typeof HOSTILE)[string]>): Promise<number> => {
  const sockets = new Set<Socket>()
  t.teardown(() => sockets.forEach(socket => socket.destroy()))
  return listening(
    t,
    createServer(socket => {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
      const say = (): void => {
        while (how.endless !== undefined && !socket.destroyed && socket.write(how.endless, 'latin1'));
        if (how.endless !== undefined) socket.once('drain', say)
      }
      const begin = () => {
        if (how.first !== undefined) socket.write(how.first, how.first.includes('\u202e') ? 'utf8' : 'latin1')
        if (how.closes) socket.end()
        else say()
      }
      if (how.closes && how.first === undefined) socket.destroy()
      else begin()
    }),
  )
}

t.test('a hostile server of a share gets an answer in bounded time and memory, and nothing else', async t => {
  const daemon = await daemonWith(t, ['capabilities', 'disks'], { fakes: vaultFake().fakes })
  const before = process.memoryUsage().rss
  for (const [how, make] of Object.entries(HOSTILE)) {
    const port = await hostileServer(t, make(Number(new URL(daemon.url).port)))
    const targets: DiskTarget[] = [
      { provider: 'webdav', url: `http://127.0.0.1:${port}/`, username: 'ada', password: 'a-password-of-a-share' },
      { provider: 'sshfs', host: '127.0.0.1', port, user: 'ada', path: '/', password: 'a-password-of-a-share' },
      { provider: 'smb', server: '127.0.0.1', port, share: 's', username: 'ada', password: 'a-password-of-a-share' },
    ]
    await Promise.all(
      targets.map(async target => {
        const began = Date.now()
        const answer = await daemon.fetch('/disks/probe', { method: 'POST', body: JSON.stringify(target) })
        const text = await answer.text()
        const shown = `${how}, ${target.provider}: ${answer.status} ${text.slice(0, 200).replace(/[^ -~]/g, '?')}`
        t.ok([200, 424, 501].includes(answer.status), shown)
        t.ok(text.length < 200_000, shown)
        t.ok(Date.now() - began < 30_000, shown)
        t.notMatch(text, /a-password-of-a-share|[\u0000-\u001f\u007f]/, shown)
      }),
    )
  }
  t.ok(process.memoryUsage().rss - before < 700 * 1024 ** 2, 'memory stays within bounds')
  t.equal((await daemon.fetch('/disks')).status, 200, 'the daemon goes on')
})
