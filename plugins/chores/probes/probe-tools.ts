import { lstat, mkdtemp, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path/posix'
import { isWithin, pathOfRepo, type Host } from '../../../sdk/index.js'
import { fileText } from '../../../sdk/node/files/file-text.js'
import type { PathTree } from '../../../sdk/node/files/open-path.js'
import { listEnv } from '../../../sdk/node/programs/run.js'
import { workNetwork } from '../../../sdk/node/programs/work-network.js'
import { homeOfWork } from '../../../sdk/node/wall/home.js'
import { runWalled } from '../../../sdk/node/wall/wall.js'
import { ProbeFailed, ProbeUnavailable, type MeasuredProject, type ProbeTools } from './probe.js'

const MOST_OUTPUT = 16 * 1024 * 1024
const MOST_TEXT = 32 * 1024 * 1024
/** Says which program the machine lacks, and else becomes it. */
const START = 'command -v "$0" >/dev/null 2>&1 || { echo sandbox-has-no "$0" >&2; exit 127; }; exec "$0" "$@"'
const MISSING = /^sandbox-has-no /m

type ToolsHost = Pick<Host, 'place' | 'call' | 'serves'>

/** Who measures, what, and for how long. */
export interface ProbeRun {
  readonly repo: string
  readonly limitMs: number
  readonly signal: AbortSignal
}

/** The temporary folders of measurements begin with this, in the folder of the group. */
export const SCRATCH = 'scratch-'

/** What a measurement of a repository can use. Programs see the repository alone, and cannot change it. */
export const probeTools = (host: ToolsHost, { repo, limitMs, signal }: ProbeRun): ProbeTools => {
  const { workspace, data, folder, hidden, grants } = host.place
  const tree: PathTree = { root: workspace, reach: undefined, readsGit: false }
  const path = pathOfRepo(repo)
  const late = performance.now() + limitMs

  return {
    run: async (dir, program, args) => {
      const scratch = await mkdtemp(join(folder, SCRATCH))
      try {
        const { code, stdout, stderr, timedOut, truncated } = await runWalled(
          {
            ...{ workspace, data, hide: hidden, grants },
            home: { ...(await homeOfWork(data)), tmp: scratch },
            cwd: join(workspace, path, dir),
            env: listEnv({ CI: 'true', NO_COLOR: '1', NODE_NO_WARNINGS: '1' }),
            only: [{ path, access: 'read' }],
            network: workNetwork(host),
            path: [dirname(process.execPath)],
          },
          'sh',
          ['-c', START, program, ...args],
          { signal, maxBytes: MOST_OUTPUT, timeoutMs: Math.max(1, late - performance.now()) },
        )
        if (timedOut) throw new ProbeFailed(`it did not end within ${limitMs / 60_000} minutes`)
        if (truncated) throw new ProbeFailed(`${program} printed more than ${MOST_OUTPUT / 1024 / 1024} MiB`)
        if (code === 127 && MISSING.test(stderr))
          throw new ProbeUnavailable(`the program ${program} is not on this machine`)
        return { code, text: stdout.toString(), errors: stderr }
      } finally {
        await rm(scratch, { recursive: true, force: true })
      }
    },

    text: name => fileText(tree, join(path, name), MOST_TEXT),

    has: name =>
      lstat(join(workspace, path, name)).then(
        () => true,
        () => false,
      ),

    projects: async () => {
      const [{ projects }, { repos }] = await Promise.all([
        host.call('GET /workspace/setup'),
        host.call('GET /workspace/repos'),
      ])
      const inner = repos.filter(other => other !== path && isWithin(path, other))
      return projects.flatMap(({ dir, manager, evidence, missing = 0 }): MeasuredProject[] => {
        const at = dir === '' ? '.' : dir
        if (!isWithin(path, at) || inner.some(other => isWithin(other, at))) return []
        const own = at === path ? '' : path === '.' ? at : at.slice(path.length + 1)
        return [{ dir: own, manager, evidence, ...(missing > 0 && { missing }) }]
      })
    },
  }
}
