// What the workspace does with much: a million files, 10,000 changes at once, files of gigabytes, repositories of a
// hundred thousand files. Against programs that do the same in the same run: `node dist/test/bench/large.js`, or
// with the names of some of its functions.
import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, realpathSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawnDaemon, type RunningDaemon } from '../support/daemon.js'
import { spawnsIn } from '../support/repositories/fleet.js'
import { asked, median, mib, ms, print, quick, timed, verdict, x } from './measure.js'

const MIB = 1024 * 1024
const PER_FOLDER = 100
const [FILES, STATUS, TRASHED, SAVED, TRACKED] = quick
  ? ([2000, 500, 500, 500, 2000] as const)
  : ([1_000_000, 50_000, 100_000, 300_000, 1_000_000] as const)
const CHANGES = quick ? 1000 : 10_000
const LOG_BYTES = quick ? 8 * MIB : 3_000_000_000
const PART = quick ? MIB : 64 * MIB
const PARTS = 16

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'bench-large-')))
let worlds = 0

/** A workspace with a repository in its root, and the data folder of its daemon. */
const place = () => {
  const at = join(folder, String(++worlds))
  const where = { workspace: join(at, 'workspace'), data: join(at, 'data') }
  for (const dir of Object.values(where)) mkdirSync(dir, { recursive: true })
  inGit(where.workspace, 'init', '-q', '-b', 'main')
  return where
}
const inGit = (cwd: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.org', ...args], {
    cwd,
    encoding: 'utf8',
    maxBuffer: 1 << 30,
  })
const makeFiles = (root: string, count: number): void => {
  for (let at = 0; at < count; at++) {
    const dir = join(root, `d${Math.floor(at / PER_FOLDER / 100)}/e${Math.floor(at / PER_FOLDER)}`)
    if (at % PER_FOLDER === 0) mkdirSync(dir, { recursive: true })
    const file = openSync(join(dir, `f${at}`), 'w')
    writeSync(file, `${at % 1000}\n`)
    closeSync(file)
  }
}

/** Starts a daemon for some work and ends it; the folder of the workspace goes too. */
const served = async (
  where: ReturnType<typeof place>,
  work: (daemon: RunningDaemon) => Promise<unknown>,
  env?: NodeJS.ProcessEnv,
): Promise<void> => {
  const teardowns: (() => unknown)[] = []
  const daemon = await spawnDaemon({ teardown: (end: () => unknown) => void teardowns.push(end) } as never, {
    ...where,
    ...(env && { env }),
  })
  try {
    await work(daemon)
  } finally {
    for (const end of teardowns) await end()
    rmSync(where.workspace, { recursive: true, force: true })
  }
}
const resident = (pid: number, field = 'VmRSS'): number =>
  Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024

const manyFiles = async (): Promise<void> => {
  const where = place()
  makeFiles(where.workspace, FILES)
  const find = await timed(() => execFileSync('find', ['.'], { cwd: where.workspace, maxBuffer: 1 << 30 }))
  await served(where, async ({ client, pid }) => {
    const before = resident(pid)
    const first = await timed(() => client.call('GET /workspace/tree', {}))
    const again = await timed(() => client.call('GET /workspace/tree', {}))
    print(`large: find over ${FILES} files`, ms(find))
    print(`large: a tree of ${FILES} files, again`, ms(again))
    verdict(`large: the first tree of ${FILES} files, every folder watched, to find`, first / find, { most: 3, as: x })
    verdict(`large: memory for it at its highest`, resident(pid, 'VmHWM') - before, { most: 256 * MIB, as: mib })

    const { generation } = await client.call('GET /workspace/tree', {})
    const paths = Array.from({ length: CHANGES }, (_, at) => `made/g${at % 50}/n${at}`)
    const made = await timed(() => {
      for (let at = 0; at < 50; at++) mkdirSync(join(where.workspace, `made/g${at}`), { recursive: true })
      for (const path of paths) closeSync(openSync(join(where.workspace, path), 'w'))
    })
    print(`large: making ${CHANGES} files`, ms(made))
    const began = performance.now()
    const missing = new Set(paths)
    while (missing.size > 0 && performance.now() - began < 60_000) {
      const { reset, paths: changed } = await client.call('GET /workspace/changed', { since: generation })
      for (const path of changed) missing.delete(path)
      if (!reset) continue
      for (let at = 0; at < 50; at++)
        for (const { path } of (await client.call('GET /workspace/children', { path: `made/g${at}` })).entries)
          missing.delete(path)
    }
    print(`large: until a client has them all`, ms(performance.now() - began))
    verdict(`large: of ${CHANGES} files made at once, a client misses`, missing.size, { most: 0, as: String })
  })
}

const statusAgain = async (): Promise<void> => {
  const where = place()
  makeFiles(where.workspace, STATUS)
  inGit(where.workspace, 'add', '-A')
  inGit(where.workspace, 'commit', '-q', '-m', 'first')
  const spawns = spawnsIn(where.data)
  await served(
    where,
    async ({ client }) => {
      await client.call('GET /git/changes', {})
      spawns.taken()
      const [scans, bare]: number[][] = [[], []]
      for (let round = 0; round < (quick ? 2 : 9); round++) {
        await new Promise(resolve => setTimeout(resolve, 600))
        scans!.push(await timed(() => client.call('GET /git/changes', {})))
        bare!.push(
          await timed(() => inGit(where.workspace, '--no-optional-locks', 'status', '--porcelain=v2', '-uall')),
        )
      }
      print(`large: changes of ${STATUS} files, again and again`, ms(median(scans!)))
      print('large: programs started for one', String(spawns.taken().length / scans!.length))
      verdict(`large: changes of ${STATUS} files to git status`, median(scans!.map((time, at) => time / bare![at]!)), {
        most: 2,
        as: x,
      })
      const burst = await timed(() =>
        Promise.all(Array.from({ length: 20 }, () => client.call('GET /git/changes', {}))),
      )
      print('large: the same for 20 clients at once', ms(burst), `${spawns.taken().length} programs`)
    },
    spawns.env,
  )
}

const longLog = async (): Promise<void> => {
  const where = place()
  const line = 'a line of text: aé€😀\n'.repeat(4000)
  const file = openSync(join(where.workspace, 'long.log'), 'w')
  const written = createHash('sha256')
  for (let size = 0; size < LOG_BYTES;) {
    const bytes = Buffer.from(`${size} ${line}`)
    written.update(bytes)
    size += writeSync(file, bytes)
  }
  closeSync(file)
  await served(where, async ({ client, pid }) => {
    const read = createHash('sha256')
    let offset = 0
    const took = await timed(async () => {
      for (;;) {
        const part = await client.call('GET /workspace/file', { path: 'long.log', offset })
        if (!part.content || !part.bytes) break
        read.update(part.content)
        offset += part.bytes
      }
    })
    const same = read.digest('hex') === written.digest('hex')
    print(
      `large: windows of ${mib(offset)} of text, one after another`,
      ms(took),
      `${mib((offset / took) * 1000)} a second`,
    )
    verdict('large: they differ from the file', same ? 0 : 1, { most: 0, as: String })
    verdict('large: memory of the daemon at its highest', resident(pid, 'VmHWM'), { most: 400 * MIB, as: mib })
  })
}

const longUpload = async (): Promise<void> => {
  const where = place()
  const whole = createHash('sha256')
  const parts = Array.from({ length: PARTS }, () => randomBytes(PART))
  for (const part of parts) whole.update(part)
  const send = async ({ url, session }: RunningDaemon, offset: number, body: Buffer) => {
    const query = new URLSearchParams({ path: 'big', size: String(PARTS * PART), offset: String(offset) })
    const headers = { authorization: `Bearer ${session}`, 'content-type': 'application/octet-stream' }
    const answer = await fetch(`${url}/workspace/upload?${query}`, {
      method: 'POST',
      headers,
      body: new Uint8Array(body),
    })
    return (await answer.json()) as { received: number; done: boolean; hash?: string }
  }
  const first = await spawnDaemon({ teardown: () => {} } as never, where)
  for (let at = 0; at < 7; at++) await send(first, at * PART, parts[at]!)
  await first.kill9()
  await served(where, async daemon => {
    const { received } = await send(daemon, 0, Buffer.alloc(0))
    let last: Awaited<ReturnType<typeof send>> | undefined
    const took = await timed(async () => {
      for (let at = received / PART; at < PARTS; at++) last = await send(daemon, at * PART, parts[at]!)
    })
    print(`large: the rest of an upload of ${mib(PARTS * PART)} after a kill`, ms(took))
    const right = received === 7 * PART && last?.hash === whole.digest('hex')
    verdict('large: it resumes elsewhere or has another hash', right ? 0 : 1, { most: 0, as: String })
  })
}

const trash = async (): Promise<void> => {
  const where = place()
  const repo = join(where.workspace, 'shop')
  makeFiles(repo, TRASHED)
  inGit(where.workspace, 'init', '-q', repo)
  inGit(repo, 'add', '-A')
  inGit(repo, 'commit', '-q', '-m', 'first')
  await served(where, async ({ client }) => {
    let id = ''
    const deleted = await timed(async () => {
      id = (await client.call('DELETE /workspace/entry', { path: 'shop' })).trashId!
    })
    const restored = await timed(() => client.call('POST /workspace/restore', { id }))
    print(`large: deleting a repository of ${TRASHED} files`, ms(deleted))
    print('large: restoring it', ms(restored))
    const left = inGit(repo, 'status', '--porcelain').split('\n').filter(Boolean).length
    verdict('large: files that differ afterwards', left, { most: 0, as: String })
  })
}

const savedPoints = async (): Promise<void> => {
  const where = place()
  makeFiles(where.workspace, SAVED)
  await served(where, async ({ client }) => {
    const first = await timed(() => client.call('POST /history/snapshots', {}))
    let saved = true
    const second = await timed(async () => {
      saved = (await client.call('POST /history/snapshots', {})).saved
    })
    print(`large: the first saved point of ${SAVED} files`, ms(first))
    verdict('large: a second one without changes, to the first', second / first, { most: 0.1, as: x })
    verdict('large: points that it makes', Number(saved), { most: 0, as: String })
  })
}

const manyTracked = async (): Promise<void> => {
  const where = place()
  const blob = execFileSync('git', ['hash-object', '-w', '--stdin'], {
    cwd: where.workspace,
    input: 'x',
    encoding: 'utf8',
  })
  const lines = Array.from({ length: TRACKED }, (_, at) => `100644 ${blob.trim()}\td${at % 1000}/f${at}\n`)
  execFileSync('git', ['update-index', '--index-info'], { cwd: where.workspace, input: lines.join('') })
  await served(where, async ({ client }) => {
    let rows = 0
    const took = await timed(async () => {
      const [root] = (await client.call('GET /git/changes', {})).repos
      rows = (root?.staged.length ?? 0) + (root?.unstaged.length ?? 0) + (root?.truncated ?? 0)
    })
    verdict(`large: changes of an index of ${TRACKED} files`, took, { most: 30_000, as: ms })
    verdict('large: changes that are neither listed nor counted', 2 * TRACKED - rows, { most: 0, as: String })
    let paged = 0
    for (let after: string | undefined, more = true; more;) {
      const page = await client.call('GET /git/{repo}/files', { repo: 'root', ...(after && { after }) })
      paged += page.files.length
      after = page.files.at(-1)
      more = page.hasMore
    }
    verdict('large: files that their pages leave out', TRACKED - paged, { most: 0, as: String })
  })
}

const PARTS_OF_IT = [manyFiles, statusAgain, longLog, longUpload, trash, savedPoints, manyTracked]
for (const part of PARTS_OF_IT.filter(({ name }) => asked.length === 0 || asked.includes(name)))
  await part().catch((error: unknown) => {
    console.error(`${part.name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    process.exitCode = 1
  })
rmSync(folder, { recursive: true, force: true })
