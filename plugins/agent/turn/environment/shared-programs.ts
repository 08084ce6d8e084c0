import { createHash } from 'node:crypto'
import { lstat, realpath } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { contains } from '../../../../sdk/node/files/paths.js'
import type { Limiter } from '../../../../sdk/node/limits/limiter.js'
import { listEnv } from '../../../../sdk/node/programs/run.js'
import { homeOfProgram } from '../../../../sdk/node/wall/home.js'
import { hideCopy, laterCopy, mountsLater, showCopy } from '../../../../sdk/node/wall/later-mounts.js'
import { copiesAt, copyAt, treeIn } from '../../../../sdk/node/wall/later-places.js'
import { holdsAll, walled, type WallSpec } from '../../../../sdk/node/wall/wall.js'
import { hiddenBy } from '../../personas/worn.js'
import type { SharedProgram, TreeProgram } from '../../providers/adapter.js'
import type { Turn } from '../turn.js'
import type { BeginCommand } from './command-logs.js'
import type { TurnNetwork } from './networks.js'

/** The home folder of the sandbox's own program; no connected program has this name. */
const BUNDLED = '.bundled'

type TurnWall = Omit<WallSpec, 'cwd' | 'env'>

/** The dependencies of processes that serve several conversations. */
export interface SharedProgramsDeps {
  readonly data: string
  readonly limiter: Limiter
  readonly network: (id: string) => Promise<TurnNetwork>
}

/** A turn that may use such a process, and its tree. */
export interface SharingTurn {
  readonly turn: Turn
  readonly wall: TurnWall
  readonly root: string
  readonly cwd: string
  /** Only turns of the same persona share a process. */
  readonly persona?: string
  readonly begun: BeginCommand
}

/** Where the programs of a conversation see its private copy; undefined: in place of the workspace. */
export const ownPlaceOf = async ({ workspace, data, copy, only, hide = [] }: TurnWall, id: string) => {
  const isWhole = copy !== undefined && holdsAll(copy) && !only && !hide.some(path => contains(workspace, path))
  return isWhole && (await mountsLater()) ? treeIn(copyAt(data, id)) : undefined
}

/** Processes of agent programs that serve several conversations: one wall, one network and one set of limits each. */
export class SharedPrograms {
  readonly #deps: SharedProgramsDeps
  readonly #turns = new Map<string, Set<Turn>>()

  constructor(deps: SharedProgramsDeps) {
    this.#deps = deps
  }

  /** The turns that a process serves, by the id of its network. */
  turns(id: string): readonly Turn[] {
    return [...(this.#turns.get(id) ?? [])]
  }

  /** The process that a turn may share; undefined: it needs its own. */
  async of(
    { turn, wall, root, cwd, persona, begun }: SharingTurn,
    { program, args, env, needs = [], home = BUNDLED }: TreeProgram,
  ): Promise<SharedProgram | undefined> {
    const { conversationId } = turn
    const { workspace, data, grants, disks, hide, path, copy, shown = [] } = wall
    const seen = await ownPlaceOf(wall, conversationId)
    if (seen === undefined || copy === undefined || wall.sealed || wall.writable) return undefined
    // Its process could write in the trees of others, whose work may land by itself.
    if (wall.home?.apart) return undefined
    const folders = await Promise.all(needs.map(folder => realpath(folder)))
    if ([program, ...folders].some(each => contains(workspace, each))) return undefined
    const spec: WallSpec = {
      workspace,
      data,
      home: await homeOfProgram(data, home),
      cwd: copiesAt(data),
      env: listEnv({ ...env, PWD: copiesAt(data) }),
      later: true,
      readOnly: folders,
      shown: shown.filter(({ to }) => !contains(workspace, to)),
      ...(grants && { grants }),
      ...(disks && { disks }),
      ...(hide && { hide }),
      ...(path && { path }),
    }
    const key = JSON.stringify([program, args, persona, spec])
    const id = `.program-${createHash('sha256').update(key).digest('hex').slice(0, 16)}`
    const network = await this.#deps.network(id)
    const limits = this.#joined(id, turn)
    // One that was started in the machine's network serves no turn of another policy.
    const kind = await network.kind()
    const { network: _network, ...own } = wall
    const inside = { ...own, shown: shown.filter(({ to }) => contains(workspace, to)), cwd: workspace, env: {} }
    const folder = relative(root, cwd)
    return {
      key: `${key} ${kind}`,
      tree: {
        root,
        hidden: hiddenBy(wall),
        seen: { root: seen, cwd: join(seen, folder) },
        enforced: true,
        begun: (command, startedAt) => begun({ command, folder, ...(startedAt !== undefined && { startedAt }) }),
      },
      command: () => walled({ ...spec, limits, ...(network.wall && { network: network.wall }) }, program, args),
      expose: server => network.serve(server),
      show: async (pid, before) => {
        const later = await laterCopy(inside, conversationId)
        if (!later) return undefined
        const { dev, ino } = await lstat(copy.dir)
        const shows = JSON.stringify([dev, ino, later.mounts])
        if (shows === before) return before
        if (before !== undefined) await hideCopy(data, pid, conversationId)
        await showCopy(data, pid, later)
        return shows
      },
      hide: pid => hideCopy(data, pid, conversationId),
    }
  }

  /** Counts a turn among those of a process, whose limits it follows until it ends. */
  #joined(id: string, turn: Turn) {
    const limits = this.#deps.limiter.of(id)
    const turns = this.#turns.get(id) ?? new Set()
    this.#turns.set(id, turns)
    if (turns.has(turn)) return limits
    turns.add(turn)
    const leave = limits.listen(sentence => turn.fail(sentence))
    void turn.ended.then(() => {
      leave()
      turns.delete(turn)
      if (turns.size === 0) this.#turns.delete(id)
    })
    return limits
  }
}
