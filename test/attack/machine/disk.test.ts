import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createClient } from '../../../sdk/client.js'
import { folderOf, inGit, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { made } from '../../plugins/system/bundles/bundles-made.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { commitAll, gitWorld, put, repoAt } from '../../plugins/git/support.js'

const MOUNTS =
  process.getuid?.() === 0
  && spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', '/mnt']).status === 0
/** Required in CI; skipped with a message on a machine that allows no mounts. */
const skip = MOUNTS || process.env.CI ? {} : { skip: 'only the superuser can mount the small disk of this test' }

const mounted = (t: Test, at: string, limits: string): string => {
  mkdirSync(at, { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', '-o', `${limits},mode=0700`, 'tmpfs', at])
  t.teardown(() => execFileSync('umount', ['--lazy', at]))
  return at
}

/** A disk of 2 MiB that is unmounted after the test. */
const smallDisk = (t: Test, at: string, limits = 'size=2m'): string => mounted(t, at, limits)

/** The data folder on such a disk; the copy of the machine's settings, however many it has, is on another one. */
const smallData = (t: Test, at: string, limits?: string): string => {
  smallDisk(t, at, limits)
  mounted(t, join(at, 'wall'), 'size=64m')
  return at
}

/** Fills the disk except for some bytes; the returned function frees it. */
const fill = (folder: string, but = 0): (() => void) => {
  const [file, rest] = [join(folder, 'filler'), join(folder, 'rest')]
  writeFileSync(rest, Buffer.alloc(but))
  const fd = openSync(file, 'w')
  for (const size of [65_536, 4096, 1]) {
    try {
      for (;;) writeSync(fd, Buffer.alloc(size))
    } catch {
      // A block of this size no longer fits.
    }
  }
  closeSync(fd)
  rmSync(rest)
  return () => rmSync(file, { force: true })
}

/** Creates files until no inode is left; the returned function removes them. */
const fillNames = (folder: string): (() => void) => {
  const filler = join(folder, 'filler')
  mkdirSync(filler)
  try {
    for (let at = 0; ; at++) writeFileSync(join(filler, String(at)), '')
  } catch {
    // The disk has no inode left.
  }
  return () => rmSync(filler, { recursive: true, force: true })
}

const DISKS = {
  'of which all room is taken': { limits: 'size=2m', take: (data: string) => fill(data, 48 * 1024) },
  'that takes no more files': { limits: 'size=64m,nr_inodes=300', take: fillNames },
} as const

interface Refused {
  readonly status?: number
  readonly message?: string
}
const refused = async (asked: Promise<unknown>): Promise<Refused> =>
  asked.then(
    () => ({}),
    (error: Refused) => ({ status: error.status!, message: error.message! }),
  )

for (const [what, { limits, take }] of Object.entries(DISKS))
  t.test(
    `on a disk ${what} nothing acknowledged is lost, refusals are reported, and with space everything works again`,
    skip,
    async t => {
      const folder = folderOf(t)
      const [workspace, data] = [join(folder, 'workspace'), smallData(t, join(folder, 'data'), limits)]
      makeWorkspace(workspace)
      const first = await spawnDaemon(t, { workspace, data })
      const { token } = await first.client.call('POST /system/control/tokens', { label: 'before', scope: 'land' })
      const land = createClient({ url: first.url, token })
      await runTurn(land, 'said', 'say before')
      await land.call('POST /agent', { conversationId: 'asks', prompt: 'ask still there?\n| yes: y\nsay went on' })
      await framesOf(land, 'asks').until(({ kind }) => kind === 'question')
      const acknowledged = new Map<string, string>()
      const free = take(data)

      const attempts: Refused[] = []
      let title: string | undefined
      for (let at = 0; at < 12; at++) {
        const messageId = `m-full-${at}`
        attempts.push(
          await refused(
            land
              .call('POST /agent', { conversationId: `full-${at}`, prompt: `say ${'x'.repeat(5000)}`, messageId })
              .then(({ run }) => acknowledged.set(messageId, run)),
          ),
        )
        attempts.push(
          await refused(first.client.call('POST /system/control/tokens', { label: `full-${at}`, scope: 'read' })),
        )
        const wanted = `full ${at} ${'y'.repeat(60)}`
        attempts.push(
          await refused(
            land.call('POST /agents/{id}/rename', { id: 'said', title: wanted }).then(() => (title = wanted)),
          ),
        )
        attempts.push(
          await refused(
            land
              .call('POST /agent', { conversationId: 'asks', prompt: 'z'.repeat(20_000), messageId: `m-wait-${at}` })
              .then(({ run }) => acknowledged.set(`m-wait-${at}`, run)),
          ),
        )
      }
      const told = attempts.filter(({ status }) => status !== undefined)
      t.ok(
        told.length > 10 && acknowledged.size > 0,
        `${told.length} of ${attempts.length} were refused, ${acknowledged.size} messages were accepted`,
      )
      t.same(
        told.filter(({ status, message }) => status !== 413 || !/disk.*full|full.*disk/.test(message!)),
        [],
        'each with its reason',
      )
      const { agents } = await land.call('GET /agents')
      const shown = agents.find(({ id }) => id === 'said')?.title
      t.equal(shown?.startsWith('full') ? shown : undefined, title, 'reads succeed, and refused messages do not exist')
      t.equal((await fetch(`${first.url}/health`)).status, 200)

      free()
      t.equal((await runTurn(land, 'said', 'say there is room')).at(-1)?.kind, 'done')
      const { id } = await first.client.call('POST /system/control/tokens', { label: 'after', scope: 'read' })
      await first.kill9()

      const second = await spawnDaemon(t, { workspace, data })
      const again = createClient({ url: second.url, token })
      const listed = (await second.client.call('GET /system/control/tokens')).tokens
      t.ok(listed.some(one => one.id === id))
      t.match(await again.call('GET /agents/{id}', { id: 'asks' }), { status: 'awaiting' })
      const { messages } = await again.call('GET /agents/{id}/transcript', { id: 'said' })
      t.match(JSON.stringify(messages), /before.*there is room/s)
      for (const [messageId, run] of acknowledged) {
        const conversationId = messageId.replace(/^m-full/, 'full').replace(/^m-wait-.*/, 'asks')
        t.equal(
          (await again.call('POST /agent', { conversationId, prompt: 'say x', messageId })).run,
          run,
          `${messageId} is known`,
        )
      }
    },
  )

t.test(
  'a turn whose log cannot be written on a full disk ends as failed with the reason, and the next one runs',
  skip,
  async t => {
    const folder = folderOf(t)
    const [workspace, data] = [join(folder, 'workspace'), smallData(t, join(folder, 'data'))]
    makeWorkspace(workspace)
    const { client, url } = await spawnDaemon(t, { workspace, data })
    await client.call('POST /agent', {
      conversationId: 'long',
      prompt: `wait words\nrepeat 200 say ${'x'.repeat(20_000)}`,
    })
    const frames = framesOf(client, 'long')
    await frames.until(({ kind }) => kind !== 'worktree')
    const free = fill(data)
    await client
      .call('POST /agent/steer', { conversationId: 'long', text: 'go on' })
      .catch(error => t.match(error, { status: 413 }))
    await client.call('POST /agent/stop', { conversationId: 'long' }).catch(() => {})
    t.equal((await fetch(`${url}/health`)).status, 200)
    free()
    for (;;) {
      const { status } = await client.call('GET /agents/{id}', { id: 'long' })
      if (!['running', 'awaiting', 'stopping'].includes(status)) break
      await new Promise(resolve => setTimeout(resolve, 100))
    }
    t.equal((await runTurn(client, 'next', 'say there is room')).at(-1)?.kind, 'done')
    t.equal((await runTurn(client, 'long', 'say again')).at(-1)?.kind, 'done', 'the conversation continues')
  },
)

t.test('who watches a turn that its full disk stops is told so, and with space it can go on', skip, async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), smallData(t, join(folder, 'data'))]
  makeWorkspace(workspace)
  const { client } = await spawnDaemon(t, { workspace, data })
  await client.call('POST /agent', {
    conversationId: 'long',
    prompt: `wait 3000\nrepeat 200 say ${'x'.repeat(20_000)}`,
  })
  const watched = framesOf(client, 'long')
  await watched.until(({ kind }) => kind !== 'worktree')
  // The first look makes what it needs.
  await client.call('GET /agents')
  const free = fill(data)
  const told = {
    status: 413,
    message: 'the disk of the sandbox is full, so this turn stopped: free some space and send its message again',
  }
  await t.rejects(watched.all(), told)
  await t.rejects(framesOf(client, 'long').all(), told, 'also who comes later')
  while ((await client.call('GET /agents')).agents.some(({ status }) => status === 'running'))
    await new Promise(resolve => setTimeout(resolve, 200))
  await t.rejects(framesOf(client, 'long').all(), told, 'and once the end is given up')
  free()
  t.equal((await runTurn(client, 'long', 'say again')).at(-1)?.kind, 'done', 'the conversation continues')
})

t.test('no wall shows half of the settings of the machine because the disk was full', skip, async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  mkdirSync(data, { mode: 0o700 })
  const wall = mounted(t, join(data, 'wall'), 'size=256k')
  const { client } = await spawnDaemon(t, { workspace, data })
  const count = 'run find /etc -type f | wc -l; wc -c < /etc/passwd'
  const refused = await runTurn(client, 'full', count)
  t.match(
    refused.findLast(({ kind }) => kind === 'tool_call_update'),
    { status: 'failed' },
  )
  execFileSync('mount', ['-o', 'remount,size=64m', wall])
  const shown = JSON.stringify(await runTurn(client, 'again', count))
  t.ok(shown.includes(`\\n${statSync('/etc/passwd').size}\\n`), shown)
})

t.test('on a full disk backups and restores are refused with the required space, and leave no files', skip, async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), smallData(t, join(folder, 'data'))]
  makeWorkspace(workspace, { 'large.bin': randomBytes(1_500_000).toString('latin1') })
  const { client } = await spawnDaemon(t, { workspace, data })
  await client.call('GET /agents')
  const whole = await refused(client.call('POST /bundles', {}))
  t.match(whole, { status: 413, message: /takes about \d+ MiB of disk, and \d+ MiB are free/ })
  t.same((await client.call('GET /bundles')).exports, [])
  await made(
    join(workspace, 'restored'),
    [{ path: 'state/agent/c.json', text: randomBytes(1_600_000).toString('hex') }],
    { groups: [{ group: 'agent', version: 1 }] },
  )
  const back = await refused(client.call('POST /bundles/restore', { path: 'restored', mode: 'apply' }))
  t.match(back, { status: 413, message: /takes about \d+ MiB of disk, and \d+ MiB are free/ })
  t.same(
    [readdirSync(join(data, 'system', 'staged')), readdirSync(join(workspace, '.sandbox', 'restored'))],
    [[], ['.gitignore']],
  )
  rmSync(join(workspace, 'restored'))

  // Enough space for the estimate, but not for the actual size.
  rmSync(join(workspace, 'large.bin'))
  inGit(workspace, 'commit', '-qam', 'without it')
  writeFileSync(join(workspace, 'middle.bin'), randomBytes(300_000))
  const free = fill(data, 400_000)
  const asked = await refused(client.call('POST /bundles', { repos: ['root'] }))
  if (asked.status === undefined) {
    for (;;) {
      const {
        exports: [one],
      } = await client.call('GET /bundles')
      if (one?.state === 'packing') continue
      t.match(one, { state: 'failed', detail: /disk is full/ })
      break
    }
  } else t.match(asked, { status: 413 })
  t.same([readdirSync(join(data, 'system', 'exports')), existsSync(join(data, 'system', 'making'))], [[], false])
  free()
})

t.test('a repository on a full disk, or on one that cannot be written, says so and is left whole', skip, async t => {
  const { client, workspace } = await gitWorld(t, {}, ['workspace', 'history'])
  const repo = 'small'
  const at = smallDisk(t, join(workspace, repo))
  repoAt(at, { f: '1\n' })
  put(at, { f: '2\n' })
  const head = commitAll(at, 'second')
  put(at, { f: randomBytes(100 * 1024) })
  const asks = [
    () => client.call('POST /git/{repo}/stage', { repo, paths: ['f'] }),
    () => client.call('POST /git/{repo}/commit', { repo, message: 'm', all: true }),
    () => client.call('POST /git/{repo}/branches', { repo, name: 'b', checkout: true }),
    () => client.call('POST /git/{repo}/stash', { repo }),
  ]
  const state = () => [inGit(at, 'rev-parse', 'main').trim(), inGit(at, 'ls-files', '-s'), inGit(at, 'branch')]
  const before = state()
  const free = fill(at)
  for (const ask of asks) {
    t.match(await refused(ask()), { status: 413, message: /disk/ }, String(ask))
    t.same(state(), before)
  }
  inGit(at, 'fsck', '--no-dangling')
  t.match(await client.call('GET /git/{repo}/status', { repo }), { head, dirty: true })
  free()
  t.match(await client.call('POST /git/{repo}/commit', { repo, message: 'm', all: true }), { committed: true })

  put(at, { f: '4\n' })
  execFileSync('mount', ['-o', 'remount,ro', at])
  for (const ask of asks)
    t.match(await refused(ask()), { status: 422, message: 'small cannot be changed: its file system is read-only' })
  t.match(await client.call('GET /git/{repo}/status', { repo }), { files: exactly('f') })
})
