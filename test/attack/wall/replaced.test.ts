import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { WallKind } from '../../../sdk/node/wall/wall.js'
import { folderOf } from '../../support/daemon.js'
import { USERS } from '../users.js'

const ME = process.getuid?.() ?? 0
const SECRET = 'nobody behind the wall reads this'

/** What a path is before, while and after the machine changes it. */
const MAKES: { readonly [what: string]: (path: string, mode: number) => void } = {
  'a file': (path, mode) => writeFileSync(path, SECRET, { mode }),
  'a folder': (path, mode) => {
    mkdirSync(path, { mode: mode | 0o100 })
    writeFileSync(join(path, 'key'), SECRET, { mode })
  },
}

/** How a machine puts something else in the place of a path. */
const CHANGES: { readonly [how: string]: (path: string, make: (path: string) => void) => void } = {
  'renames another over it': (path, make) => {
    make(`${path}.new`)
    try {
      renameSync(`${path}.new`, path)
    } catch {
      rmSync(path, { recursive: true })
      renameSync(`${path}.new`, path)
    }
  },
  'moves it away and makes another': (path, make) => {
    rmSync(`${path}.old`, { recursive: true, force: true })
    renameSync(path, `${path}.old`)
    make(path)
  },
  'removes it and makes another': (path, make) => {
    rmSync(path, { recursive: true })
    make(path)
  },
  'moves the folder around it away and back': path => {
    const folder = dirname(path)
    if (folder === '/etc') return
    renameSync(folder, `${folder}.away`)
    renameSync(`${folder}.away`, folder)
  },
}

/** Every closed path of a wall whose folder lies outside of it. */
const placesIn = (base: string): { readonly [place: string]: { readonly path: string; readonly modes: number[] } } => {
  const name = `sandbox-test-${randomBytes(6).toString('hex')}`
  return {
    // Only the superuser can change the machine's settings.
    ...(ME === 0 && { 'settings of the machine': { path: join('/etc', name), modes: [0o600, 0o640] } }),
    'a hidden path in a folder that is shown': { path: join(base, 'granted/hidden'), modes: [0o644] },
    'a hidden path deeper in a folder that is shown': { path: join(base, 'granted/inner/hidden'), modes: [0o644] },
  }
}

const worldOf = (t: Test, uid: number) => {
  const base = folderOf(t)
  for (const folder of ['', 'work', 'data', 'granted', 'granted/inner']) {
    mkdirSync(join(base, folder), { recursive: true })
    chownSync(join(base, folder), uid, ME === 0 ? uid : (process.getgid?.() ?? 0))
  }
  writeFileSync(join(base, 'granted/open'), 'open to all\n')
  return base
}

const reading = (kind: WallKind, base: string, uid: number, paths: readonly string[]) => {
  const program = fileURLToPath(new URL('./replaced-program.js', import.meta.url))
  const child = spawn(process.execPath, [program, kind, base, ...paths], {
    cwd: '/',
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(uid !== ME && { uid, gid: uid }),
    env: { PATH: process.env.PATH, HOME: join(base, 'home'), _TAPJS_PROCESSINFO_CWD_: base },
  })
  const pieces: string[] = []
  child.stdout.setEncoding('utf8').on('data', piece => pieces.push(String(piece)))
  const over = new Promise<string>(resolve => child.once('close', () => resolve(pieces.join(''))))
  return { child, over }
}

for (const kind of ['bwrap', 'unshare'] as const) {
  for (const [user, uid] of USERS) {
    t.test(`behind ${kind}, as ${user}, nothing closed appears while the machine replaces it`, async t => {
      const base = worldOf(t, uid)
      const places = placesIn(base)
      const cases = Object.entries(places).flatMap(([place, { path, modes }]) =>
        Object.entries(MAKES).flatMap(([what, make]) =>
          Object.entries(CHANGES).flatMap(([how, change]) =>
            modes.map(mode => ({ place, path, what, make, how, change, mode })),
          ),
        ),
      )
      const world = [...new Set(cases.map(({ path }) => path))]
      t.teardown(() => {
        for (const path of world)
          for (const each of [path, `${path}.new`, `${path}.old`]) rmSync(each, { recursive: true, force: true })
      })
      for (const path of world) MAKES['a file']!(path, 0o600)
      const { child, over } = reading(kind, base, uid, world)
      t.teardown(() => child.kill('SIGKILL'))
      const ready = join(base, 'data/homes/people/home/ready')
      for (let waited = 0; !existsSync(ready) && child.exitCode === null && waited < 1000; waited++) await delay(20)
      for (const { path, make, change, mode } of cases) {
        rmSync(path, { recursive: true, force: true })
        make(path, mode)
        await delay(25)
        change(path, at => make(at, mode))
        await delay(50)
      }
      writeFileSync(join(base, 'data/homes/people/home/stop'), '')
      const seen = await over
      if (seen.startsWith('none')) return void t.pass(`skipped: ${kind} does not start here`)
      t.ok(cases.length >= 16, `${cases.length} changes`)
      t.notMatch(seen, SECRET)
      t.match(seen, /over\nopen to all\nroot:/, 'what is open is there')
      t.match(seen, '/etc/ssl')
    })
  }
}
