import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Limiter } from '../../../../sdk/node/limits/limiter.js'
import { wallLimits, type WallLimits } from '../../../../sdk/node/limits/settings.js'
import { runWalled, walled, type WallKind } from '../../../../sdk/node/wall/wall.js'
import { listEnv } from '../../../../sdk/node/programs/run.js'
import { folderOf } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { noWall } from '../../../support/walls.js'

const MIB = 1024 ** 2
const WIDE: WallLimits = {
  memory: 2048 * MIB,
  processes: 4000,
  openFiles: 100_000,
  fileSize: 1024 * MIB,
  pseudoTerminals: 4000,
}

const place = (t: Test) => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  for (const path of [workspace, data]) mkdirSync(path)
  return { workspace, data, cwd: workspace, env: listEnv() }
}

for (const kind of ['bwrap', 'unshare'] as const satisfies WallKind[]) {
  const starts = (await walled(place(t), 'true', [], kind)).enforced

  t.test(`behind ${kind}`, { skip: noWall(starts, kind) }, async t => {
    /**
     * Runs shell commands concurrently in one group, and returns the reported limit and the output of each.
     */
    const together = async (t: Test, limits: Partial<WallLimits>, commands: readonly string[]) => {
      const spec = place(t)
      const group = new Limiter({ ...WIDE, ...limits }).of('c')
      const heard: string[] = []
      t.teardown(group.listen(sentence => heard.push(sentence)))
      const results = await Promise.allSettled(
        commands.map(command =>
          runWalled({ ...spec, limits: group }, 'sh', ['-c', command], { timeoutMs: 30_000 }, kind),
        ),
      )
      return {
        heard,
        group,
        said: results.map(result =>
          result.status === 'fulfilled'
            ? result.value.stdout.toString().trim()
            : String((result.reason as Error).message),
        ),
      }
    }

    t.test('every program starts with the limits, and its environment and folder are unchanged', async t => {
      const script = 'ulimit -S -n; ulimit -H -n; ulimit -f; ulimit -c; cat /proc/self/oom_score_adj; pwd; echo $HOME'
      const { heard, said } = await together(t, { openFiles: 4000, fileSize: 64 * MIB }, [script])
      const [soft, hard, blocks, core, score, folder, home] = said[0]!.split('\n')
      t.same([soft, hard, blocks, core, score], ['4000', '4000', String(64 * 2048), '0', '500'])
      t.match(folder, /workspace$/)
      t.equal(home, process.env.HOME ?? '')
      t.same(heard, [])
    })

    t.test('the use of the programs of a group is added up, and they end together', async t => {
      const hog = 'perl -e \'$k = "x" x (60 << 20); sleep 20\'; echo went on'
      const { heard, said } = await together(t, { memory: 150 * MIB }, [hog, hog, hog, 'sleep 20; echo went on'])
      t.match(heard, exactly(/^expected at most 150 MiB of memory in a turn, found \d+ MiB: /))
      t.same(
        said,
        Array.from({ length: 4 }, () => heard[0]),
      )
    })

    t.test('another group is not affected', async t => {
      const spec = place(t)
      const limiter = new Limiter({ ...WIDE, processes: 60 })
      const start = (key: string, command: string) =>
        runWalled({ ...spec, limits: limiter.of(key) }, 'sh', ['-c', command], { timeoutMs: 30_000 }, kind)
      const other = start('other', 'until [ -e go ]; do sleep 0.05; done; echo still here')
      await t.rejects(start('bomb', 'for n in $(seq 100); do sleep 20 & done; wait'), {
        message: /^expected at most 60 processes and threads in a turn, found \d+: /,
        reason: 'too-large',
      })
      writeFileSync(join(spec.workspace, 'go'), '')
      t.equal((await other).stdout.toString(), 'still here\n')
    })

    t.test('memory pages that the children of a large process share count once', async t => {
      const forks =
        'perl -e \'$| = 1; $k = "x" x (80 << 20); for (1..5) { next if fork; sleep 2; exit } 1 while wait > 0; '
        + 'print "well"\''
      const { heard, said } = await together(t, { memory: 300 * MIB }, [forks])
      t.same([heard, said], [[], ['well']])
    })

    t.test('threads count like processes', async t => {
      const threads =
        `exec ${process.execPath} -e 'const { Worker } = require("worker_threads"); for (let n = 0; `
        + `n < 60; n++) new Worker("setTimeout(() => {}, 20000)", { eval: true })'`
      const { heard } = await together(t, { processes: 50 }, [threads])
      t.match(heard, exactly(/^expected at most 50 processes and threads in a turn, found \d+: /))
    })

    t.test('a program that starts in a group over its limit ends at once, and the next turn counts anew', async t => {
      const spec = place(t)
      const group = new Limiter({ ...WIDE, fileSize: MIB }).of('c')
      const start = (command: string) =>
        runWalled({ ...spec, limits: group }, 'sh', ['-c', command], { timeoutMs: 30_000 }, kind)
      const leave = group.listen(() => {})
      await t.rejects(start('truncate -s 2M big'), { message: /^expected at most 1\.0 MiB in one file, found more: / })
      await t.rejects(start('sleep 20'), { message: /in one file/ })
      leave()
      t.teardown(group.listen(() => {}))
      t.equal((await start('echo well')).stdout.toString(), 'well\n')
    })

    t.test('output about a file that is too large is not treated as the file limit', async t => {
      const { heard } = await together(t, {}, [
        'echo "EFBIG: File size limit exceeded"',
        'echo "MulterError: File too large"; exit 1',
      ])
      t.same(heard, [])
    })
  })
}

t.test('limits that a deployment leaves out depend on the machine', async t => {
  const { memory, processes, openFiles, fileSize, pseudoTerminals } = await wallLimits({}, t.testdir())
  t.equal(pseudoTerminals, 256)
  t.ok(memory > 256 * MIB && Number.isSafeInteger(memory))
  t.ok(processes > 1024 && processes % 128 === 0)
  t.equal(openFiles, 65_536)
  t.ok(fileSize > 0 && fileSize <= 32 * 1024 * MIB)
  t.same(
    await wallLimits(
      { memory: '1.5GiB', processes: 100, openFiles: 200, fileSize: '10MiB', pseudoTerminals: 9 },
      t.testdir(),
    ),
    {
      memory: 1536 * MIB,
      processes: 100,
      openFiles: 200,
      fileSize: 10 * MIB,
      pseudoTerminals: 9,
    },
  )
})
