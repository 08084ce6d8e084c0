import { refuse } from '../../sdk/index.js'
import { ConfigEntries } from '../../sdk/node/files/config-entries.js'
import { loopsContract, type LoopDesign, type LoopShape } from './contract.js'

/** The file of saved designs, from the workspace. */
export const DESIGNS_FILE = '.sandbox/config/loops.json'

/** The saved designs of loops. */
export type LoopDesigns = ConfigEntries<LoopDesign>

/** The designs in a workspace. */
export const loopDesigns = (workspace: string): LoopDesigns =>
  new ConfigEntries(workspace, {
    ...{ file: DESIGNS_FILE, one: 'design', many: 'designs of loops', list: 'GET /loops/designs' },
    parse: designOf,
  })

/** Why the output and the checks of a loop do not fit; undefined: they do. */
export const shapeProblem = ({ output, checks }: Pick<LoopShape, 'output' | 'checks'>): string | undefined => {
  if (output.kind === 'none' && checks.length === 0)
    return 'checks: expected a check or a document (output), found neither: nothing could say that it is finished'
  const twice = twiceNamed(output)
  return twice === undefined ? undefined : `output.fields: expected each name once, found ${twice} twice`
}

const twiceNamed = (output: LoopShape['output']): string | undefined => {
  const names = output.kind === 'json' ? output.fields.map(({ name }) => name) : []
  return names.find((name, at) => names.indexOf(name) !== at)
}

/** Refuses output and checks that do not fit. */
export const assertShape = (shape: Pick<LoopShape, 'output' | 'checks'>): void => {
  const problem = shapeProblem(shape)
  if (problem === undefined) return
  const path = problem.slice(0, problem.indexOf(':'))
  refuse('unprocessable', problem, { errors: [{ path, expected: problem.slice(path.length + 2) }] })
}

const designOf = (id: string, value: object): LoopDesign | string => {
  const call = { call: 'POST /loops/designs', input: { design: { ...value, id }, create: true } }
  const checked = loopsContract.request(call)
  if (!checked.success) return `${checked.errors[0]!.path.replace('$input.input.design.', '')} does not fit`
  const { design } = checked.data.input as { design: LoopDesign }
  return shapeProblem(design) ?? design
}
