import { refuse } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { ConfigFile } from '../../sdk/node/files/config-file.js'
import { loopsContract, type LoopDesign, type LoopDesignProblem, type LoopShape } from './contract.js'

/** The file of saved designs, from the workspace. */
export const DESIGNS_FILE = '.sandbox/config/loops.json'

const MOST = 200
const MOST_BYTES = 256 * 1024

/** The content of the file. */
export interface StoredDesigns {
  /** By name. */
  readonly designs: LoopDesign[]
  readonly problems: LoopDesignProblem[]
  /** Why the whole file cannot be used. */
  readonly wrong?: string
}

/** Why the output and the checks of a loop do not fit; undefined: they do. */
export const shapeProblem = ({ output, checks }: Pick<LoopShape, 'output' | 'checks'>): string | undefined => {
  if (output.kind === 'none' && checks.length === 0)
    return 'checks: expected a check or a document (output), found neither: nothing could say that it is finished'
  const names = output.kind === 'json' ? output.fields.map(({ name }) => name) : []
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  return twice === undefined ? undefined : `output.fields: expected each name once, found ${twice} twice`
}

/** Refuses output and checks that do not fit. */
export const assertShape = (shape: Pick<LoopShape, 'output' | 'checks'>): void => {
  const problem = shapeProblem(shape)
  if (problem === undefined) return
  const path = problem.slice(0, problem.indexOf(':'))
  refuse('unprocessable', problem, { errors: [{ path, expected: problem.slice(path.length + 2) }] })
}

/** The saved designs, in a file that git versions and people edit too: read at each use and written in one step. */
export class DesignFile {
  readonly #file: ConfigFile
  readonly #lock = new KeyedMutex()

  constructor(workspace: string) {
    this.#file = new ConfigFile(workspace, DESIGNS_FILE, 'designs of loops')
  }

  async read(): Promise<StoredDesigns> {
    const { keys, wrong } = await this.#file.load()
    const designs: LoopDesign[] = []
    const problems: LoopDesignProblem[] = []
    for (const [id, value] of Object.entries(keys)) {
      const design = designOf(id, value)
      if (typeof design === 'string') problems.push({ id: id.slice(0, 60), message: design })
      else designs.push(design)
    }
    designs.sort((one, other) => (one.name < other.name || (one.name === other.name && one.id < other.id) ? -1 : 1))
    return { designs, problems, ...(wrong !== undefined && { wrong }) }
  }

  /** Writes a design: a new one never replaces another, and a change never makes one. */
  put(design: LoopDesign, create: boolean): Promise<void> {
    assertShape(design)
    const { id, ...written } = design
    return this.#edit(keys => {
      const known = Object.hasOwn(keys, id)
      if (create && known) refuse('conflict', `there is a design ${id} already: choose another id`)
      if (!create && !known) refuseUnknownDesign(id)
      if (!known && Object.keys(keys).length >= MOST)
        refuse('unprocessable', `there are ${MOST} designs already: remove one first`)
      return { ...keys, [id]: written }
    })
  }

  remove(id: string): Promise<void> {
    return this.#edit(keys => {
      if (!Object.hasOwn(keys, id)) refuseUnknownDesign(id)
      const { [id]: _gone, ...others } = keys
      return others
    })
  }

  /** Removes the temporary files of interrupted writes. */
  sweep(): Promise<void> {
    return this.#file.sweep()
  }

  #edit(next: (keys: { readonly [id: string]: unknown }) => { readonly [id: string]: unknown }): Promise<void> {
    return this.#lock.with(DESIGNS_FILE, async () => {
      const kept = await this.#file.load()
      if (kept.wrong !== undefined) refuse('unprocessable', kept.wrong)
      const keys = next(kept.keys)
      const bytes = Buffer.byteLength(JSON.stringify(keys, undefined, 2))
      if (bytes >= MOST_BYTES)
        refuse('too-large', `the designs would have ${bytes} bytes: expected less than ${MOST_BYTES}`)
      await this.#file.save({ keys, mode: kept.mode })
    })
  }
}

const refuseUnknownDesign = (id: string): never =>
  refuse('not-found', `there is no design ${JSON.stringify(id.slice(0, 60))}: GET /loops/designs lists them`)

/** A design as the file has it, or why it is none. */
const designOf = (id: string, value: unknown): LoopDesign | string => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'expected a design'
  const call = { call: 'POST /loops/designs', input: { design: { ...value, id }, create: true } }
  const checked = loopsContract.request(call)
  if (!checked.success) return `${checked.errors[0]!.path.replace('$input.input.design.', '')} does not fit`
  const { design } = checked.data.input as { design: LoopDesign }
  return shapeProblem(design) ?? design
}
