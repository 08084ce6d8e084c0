import { refuse, type FieldError } from '../../../sdk/index.js'
import type { Workflow, WorkflowGate, WorkflowStep } from '../contract.js'

/** One fault of a design, as a sentence that begins with its field. */
export interface WorkflowFault {
  readonly path: string
  readonly expected: string
}

const RESERVED = 'runs'
/** How many faults the message names; `errors` has all. */
const MOST_NAMED = 4

/** Everything that is wrong with a design. */
export const faultsOf = (workflow: Workflow): WorkflowFault[] => {
  const { id, steps, gate } = workflow
  return [
    ...(id === RESERVED ? [{ path: 'id', expected: `another id, found ${RESERVED}, a word of routes` }] : []),
    ...steps.flatMap((step, at) => stepFaults(step, at, steps)),
    ...circleFaults(steps),
    ...(gate ? gateFaults(gate, steps) : []),
  ]
}

/** Refuses a design that has faults; names all of them. */
export const assertFaultless = (workflow: Workflow, within = ''): void => {
  const faults = faultsOf(workflow)
  if (faults.length === 0) return
  const errors: FieldError[] = faults.map(({ path, expected }) => ({ path: `${within}${path}`, expected }))
  const named = errors.slice(0, MOST_NAMED).map(({ path, expected }) => `${path}: expected ${expected}`)
  const left = errors.length - named.length
  refuse('unprocessable', `${named.join('; ')}${left > 0 ? `; and ${left} more faults` : ''}`, { errors })
}

const stepFaults = (step: WorkflowStep, at: number, steps: readonly WorkflowStep[]): WorkflowFault[] => {
  const path = `steps[${at}]`
  const { id, needs, handoff, output } = step
  const faults: WorkflowFault[] = []
  if (steps.findIndex(each => each.id === id) < at)
    faults.push({ path: `${path}.id`, expected: `an id of its own, found ${id} twice` })
  for (const need of new Set(needs)) {
    const field = `${path}.needs`
    if (need === id) faults.push({ path: field, expected: `other steps, found ${id} itself` })
    else if (!steps.some(each => each.id === need))
      faults.push({ path: field, expected: `steps, found no step ${need}` })
  }
  if (handoff === 'continue') {
    const [before, ...more] = new Set(needs)
    if (before === undefined || more.length > 0)
      faults.push({ path: `${path}.needs`, expected: `one step to continue (handoff), found ${new Set(needs).size}` })
    else if (steps.findIndex(each => continues(each, before)) < at)
      faults.push({
        path: `${path}.handoff`,
        expected: `one step that continues ${before}, found another before ${id}`,
      })
  }
  const names = output.kind === 'json' ? output.fields.map(({ name }) => name) : []
  const twice = new Set(names.filter((name, nth) => names.indexOf(name) !== nth))
  for (const name of twice)
    faults.push({ path: `${path}.output.fields`, expected: `each name once, found ${name} twice` })
  return faults
}

const continues = ({ handoff, needs }: WorkflowStep, before: string): boolean =>
  handoff === 'continue' && new Set(needs).size === 1 && needs[0] === before

/** The steps that can never start because they wait for each other. */
const circleFaults = (steps: readonly WorkflowStep[]): WorkflowFault[] => {
  const ids = new Set<string>(steps.map(({ id }) => id))
  let left = [...steps]
  for (;;) {
    const waiting = new Set<string>(left.map(({ id }) => id))
    const next = left.filter(({ id, needs }) => needs.some(need => need !== id && ids.has(need) && waiting.has(need)))
    if (next.length === left.length) break
    left = next
  }
  const inCircle = left.filter(({ id }) => reaches(id, id, left))
  if (inCircle.length === 0) return []
  const named = [...new Set(inCircle.map(({ id }) => id))].join(', ')
  return [{ path: 'steps', expected: `steps that do not wait for each other, found a circle of ${named}` }]
}

/** Whether a step needs another one, directly or through others. */
const reaches = (from: string, to: string, steps: readonly WorkflowStep[]): boolean => {
  const seen = new Set<string>()
  const open = [from]
  for (let id = open.pop(); id !== undefined; id = open.pop())
    for (const need of steps.find(step => step.id === id)?.needs ?? []) {
      if (need === id) continue
      if (need === to) return true
      if (!seen.has(need)) open.push(need)
      seen.add(need)
    }
  return false
}

const gateFaults = ({ step: id, field }: WorkflowGate, steps: readonly WorkflowStep[]): WorkflowFault[] => {
  const step = steps.find(each => each.id === id)
  if (!step) return [{ path: 'gate.step', expected: `a step, found no step ${id}` }]
  const { output } = step
  if (output.kind !== 'json')
    return [{ path: 'gate.step', expected: `a step with fields in its output, found ${id} with output ${output.kind}` }]
  const found = output.fields.find(({ name }) => name === field)
  if (!found) return [{ path: 'gate.field', expected: `a field of step ${id}, found no field ${field}` }]
  if (!found.required) return [{ path: 'gate.field', expected: `a required field, found the optional ${field}` }]
  if (found.type === 'string[]') return [{ path: 'gate.field', expected: `a single value, found the list ${field}` }]
  return []
}
