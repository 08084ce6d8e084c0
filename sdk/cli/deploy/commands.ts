import { createHash, randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { assertInventory, type DeployEntry } from '../../node/deploy/entries.js'
import {
  DESIRED,
  DESIRED_FILE,
  deployHostOf,
  nodeOf,
  RUNNING_FILE,
  runningStateOf,
  usedHosts,
  type DeployHost,
  type DesiredNode,
  type DesiredState,
  type RunningState,
} from '../../node/deploy/desired.js'
import { DEPLOY_KINDS } from '../../node/deploy/kinds.js'
import type { LinePrinter, NodeLine } from '../lines/lines.js'
import { SELF } from '../terminal/own-name.js'
import { CommandFailure, EXIT, type Terminal } from '../verb.js'
import { digestOf, environmentOf, planFor, serviceFor, type PlannedNode, type SeenNode } from './plan.js'
import { commitRecord, deployEntries, readRecord, recordText } from './records.js'
import { RemoteMachine, MachineFailure } from './remote.js'
import { alone, LOCK, LOOK, PUT, REMOVE } from './scripts.js'
import { SourceFolder } from './source.js'
import { tarOf, textEntry, type TarEntry } from './tar.js'

/** What commands of `deploy` work with. */
export interface DeployRun {
  readonly terminal: Pick<Terminal, 'cwd' | 'env' | 'signal' | 'version'>
  readonly print: LinePrinter
  /** The digest that a plan showed: an apply of anything else is refused. */
  readonly expect?: string
}

const refused = (message: string): never => {
  throw new CommandFailure(EXIT.refused, message)
}

const idOf = ({ name }: { readonly name: string }, node: DesiredNode | undefined): string =>
  `${node?.kind ?? 'node'}.${name}`

/** What the machine or this program said of a failure. */
const saidOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const digestOfSource = async (workspace: string, path: string): Promise<string> => {
  await using source = await SourceFolder.open(workspace, path)
  return await source.digest()
}

/** Works out what should run, of what is declared; nothing is written. */
const desiredNow = async ({ terminal, print }: DeployRun, phase?: 'resolve'): Promise<DesiredState> => {
  const entries = await deployEntries(terminal.cwd)
  assertInventory(entries)
  const nodes: DesiredNode[] = []
  for (const entry of entries) {
    if (entry.kind === 'backend') continue
    const line = { id: `${entry.kind}.${entry.name}`, ...(phase && { phase }) }
    try {
      nodes.push(await nodeWithSource(terminal.cwd, entry))
    } catch (error) {
      if (phase) await print.node({ ...line, phase, state: 'failed', detail: saidOf(error) })
      throw error
    }
    const { type } = nodes.at(-1)!
    if (phase) await print.node({ ...line, phase, state: 'done', type })
  }
  const hosts = entries.flatMap(entry =>
    entry.kind === 'backend' && nodes.some(({ host }) => host === entry.name) ? [deployHostOf(entry)] : [],
  )
  const known = await readRecord<DesiredState>(terminal.cwd, DESIRED_FILE)
  const id = known && /^[0-9a-f]{8}$/.test(known.id) ? known.id : randomBytes(4).toString('hex')
  return { version: 1, id, hosts, nodes }
}

const nodeWithSource = async (workspace: string, entry: Exclude<DeployEntry, { kind: 'backend' }>) => {
  if (entry.kind !== 'app') return nodeOf(entry)
  const path = String(entry.values.source)
  return nodeOf(entry, { path, digest: await digestOfSource(workspace, path) })
}

/** Lists what may be declared. */
export const deployKinds = async ({ terminal, print }: DeployRun): Promise<number> => {
  const { version } = terminal
  const words = DEPLOY_KINDS.map(
    ({ kind, id, description }) => `${id === undefined ? kind : `${kind} ${id}`}: ${description}`,
  )
  await print.result({ kinds: DEPLOY_KINDS, version }, words)
  return EXIT.ok
}

/** Writes what should run and commits it. */
export const deployResolve = async (run: DeployRun): Promise<number> => {
  const state = await desiredNow(run, 'resolve')
  const commit = await commitRecord(run.terminal.cwd, DESIRED_FILE, state, 'Resolve the deployment')
  const nodes = state.nodes.length
  await run.print.result({ nodes, ...(commit !== undefined && { commit }) }, [
    commit === undefined ? 'nothing changed' : `${nodes} services and apps should run (${commit.slice(0, 10)})`,
  ])
  return EXIT.ok
}

/** One machine, with what should run there and what does. */
interface LookedAt {
  readonly host: DeployHost
  readonly machine: RemoteMachine
  readonly seen: readonly SeenNode[]
}

const SEEN = /^node ([A-Za-z0-9_]+) ([0-9a-f]+|none) (\d+)$/

const lookAt = async (machine: RemoteMachine, host: DeployHost, id: string): Promise<SeenNode[]> => {
  const output = await machine.run({ script: LOOK, args: [id, host.engine] })
  return output.split('\n').flatMap(line => {
    const [, name, digest = '', running] = SEEN.exec(line) ?? []
    return name === undefined ? [] : [{ name, digest, running: Number(running) }]
  })
}

/** Refuses for want of a value: a run of the daemon gets stored ones, a person's shell what it exported. */
const lacks = ({ terminal: { env } }: DeployRun, name: string, what: string, key: string): never =>
  refused(
    env.SANDBOX_RUN_TOKEN === undefined
      ? `${name}: expected its ${what} in the variable ${key}; with the stored one: ${SELF} cli run deploy plan`
      : `${name}: store its ${what} among the secrets as ${key}`,
  )

const keyOf = (run: DeployRun, { name, sshKey }: DeployHost): string =>
  run.terminal.env[sshKey] || lacks(run, name, 'SSH key', sshKey)

/** What ran when it was recorded last; only machines that could be declared so are asked. */
const runningRecord = async (workspace: string): Promise<RunningState | undefined> => {
  const text = await recordText(workspace, `${DESIRED}/${RUNNING_FILE}`)
  if (text === undefined) return undefined
  return runningStateOf(text) ?? refused(`${DESIRED}/${RUNNING_FILE} cannot be used: undo what changed it`)
}

/** Opens each machine that something runs on, or should, and does something with it; false: one failed. */
const eachMachine = async (
  run: DeployRun,
  phase: NodeLine['phase'],
  state: DesiredState,
  work: (at: LookedAt) => Promise<boolean>,
  holds = false,
): Promise<boolean> => {
  const running = await runningRecord(run.terminal.cwd)
  let succeeded = true
  for (const host of usedHosts(state.hosts, state.nodes, running)) {
    const line = { phase, id: `host.${host.name}`, type: 'host' } as const
    await run.print.node({ ...line, state: 'start' })
    try {
      await using machine = await RemoteMachine.open(host, keyOf(run, host), run.terminal.signal)
      await using _ = holds ? await machine.hold({ script: LOCK, args: [state.id, host.engine] }) : undefined
      const seen = await lookAt(machine, host, state.id)
      await run.print.node({ ...line, state: 'done' })
      if (!(await work({ host, machine, seen }))) succeeded = false
    } catch (error) {
      run.terminal.signal.throwIfAborted()
      await run.print.node({ ...line, state: 'failed', detail: saidOf(error) })
      succeeded = false
    }
  }
  return succeeded
}

/** A node with the text of its environment, and what tells both from others. */
const withDigests = (run: DeployRun, state: DesiredState, host: DeployHost) =>
  state.nodes
    .filter(node => node.host === host.name)
    .map(node => {
      for (const { key, required } of node.secrets)
        if (required && !run.terminal.env[key]) lacks(run, node.name, 'secret', key)
      const environment = environmentOf(node, run.terminal.env)
      return { node, environment, digest: digestOf(node, environment) }
    })

/** What tells everything that should run from anything else, as a plan shows it. */
const digestOfAll = (run: DeployRun, state: DesiredState): string =>
  createHash('sha256')
    .update(
      JSON.stringify(
        state.hosts
          .flatMap(host => withDigests(run, state, host).map(({ node, digest }) => [host, node.name, digest]))
          .concat([[state.id]]),
      ),
    )
    .digest('hex')

const SHOWN = { create: 'created', update: 'updated', delete: 'deleted', none: 'unchanged' } as const

/** How many nodes each action is for. */
const countsOf = (planned: readonly PlannedNode[]) => {
  const count = (action: PlannedNode['action']) => planned.filter(each => each.action === action).length
  return { create: count('create'), update: count('update'), delete: count('delete'), none: count('none') }
}

/** Says what an apply would do, and changes nothing. */
export const deployPlan = async (run: DeployRun): Promise<number> => {
  const state = await desiredNow(run)
  const all: PlannedNode[] = []
  const succeeded = await eachMachine(run, 'plan', state, async ({ host, seen }) => {
    const planned = planFor(host.name, withDigests(run, state, host), seen)
    for (const each of planned) {
      const { action, detail, node } = each
      const type = node && { type: node.type }
      const line = { phase: 'plan', state: 'done', id: idOf(each, node), ...type, action } as const
      await run.print.node({ ...line, ...(detail !== undefined && { detail }) })
    }
    all.push(...planned)
    return true
  })
  const counts = countsOf(all)
  const digest = succeeded ? digestOfAll(run, state) : undefined
  await run.print.result({ ...counts, ...(digest !== undefined && { digest }) }, [
    `${counts.create} to create, ${counts.update} to update, ${counts.delete} to delete, ${counts.none} unchanged`,
    ...(digest === undefined ? [] : [`exactly this is applied with --expect ${digest}`]),
  ])
  return succeeded ? EXIT.ok : EXIT.failed
}

async function* archiveOf(
  workspace: string,
  node: DesiredNode,
  compose: object,
  environment: string,
): AsyncGenerator<TarEntry> {
  yield textEntry('compose.json', `${JSON.stringify(compose, undefined, 2)}\n`)
  yield textEntry('environment', environment)
  if (!node.source) return
  yield { path: 'source', mode: 0o755, type: 'folder', size: 0 }
  await using source = await SourceFolder.open(workspace, node.source.path)
  for await (const entry of source.entries()) yield { ...entry, path: `source/${entry.path}` }
}

const applyOne = async (
  run: DeployRun,
  state: DesiredState,
  { machine, host }: LookedAt,
  { name, action, node }: PlannedNode,
): Promise<string | undefined> => {
  const { cwd } = run.terminal
  if (action === 'none') return undefined
  if (!node) {
    const kept = await machine.run(alone(REMOVE, [state.id, host.engine, name]))
    const volumes = kept.split('\n').filter(Boolean)
    return volumes.length === 0 ? undefined : `kept its data: ${volumes.join(', ')}`
  }
  const environment = environmentOf(node, run.terminal.env)
  const digest = digestOf(node, environment)
  const image = `localhost/sb-${state.id}-${name}:${(node.source?.digest ?? 'none').slice(0, 12)}`.toLowerCase()
  const main = serviceFor(node.compose.services.main, environment, host.engine)
  const compose = { ...node.compose, services: { main: node.source ? { ...main, image } : main } }
  await machine.run({
    ...alone(PUT, [state.id, host.engine, name, digest, image]),
    input: tarOf(archiveOf(cwd, node, compose, environment)),
    line: line => run.print.log(`${name}: ${line}`),
  })
  return undefined
}

/** Makes the machines run what should run. */
export const deployApply = async (run: DeployRun): Promise<number> => {
  const state = await desiredNow(run)
  const resolved = await readRecord<DesiredState>(run.terminal.cwd, DESIRED_FILE)
  if (!resolved) refused('nothing is resolved yet: run deploy resolve first')
  // The file is one of the workspace: what it says counts only as far as the configuration says the same.
  if (!isDeepStrictEqual(JSON.parse(JSON.stringify(state)), resolved))
    refused('the configuration or a source changed since it was resolved: run deploy resolve again')
  if (run.expect !== undefined && run.expect !== digestOfAll(run, state))
    refused('what should run is no longer what the plan showed: make a plan again')
  const done: PlannedNode[] = []
  const work = async (at: LookedAt): Promise<boolean> => {
    let succeeded = true
    for (const each of planFor(at.host.name, withDigests(run, state, at.host), at.seen)) {
      const { node, action } = each
      const line = { phase: 'apply', id: idOf(each, node), ...(node && { type: node.type }), action } as const
      await run.print.node({ ...line, state: 'start' })
      try {
        const detail = await applyOne(run, state, at, each)
        done.push(each)
        await run.print.node({ ...line, state: 'done', ...(detail !== undefined && { detail }) })
      } catch (error) {
        run.terminal.signal.throwIfAborted()
        await run.print.node({ ...line, state: 'failed', detail: saidOf(error) })
        succeeded = false
      }
    }
    return succeeded
  }
  const succeeded = await eachMachine(run, 'apply', state, work, true)
  const counts = countsOf(done)
  const words = (Object.keys(SHOWN) as (keyof typeof SHOWN)[]).map(action => `${counts[action]} ${SHOWN[action]}`)
  await run.print.result(counts, [words.join(', ')])
  return succeeded ? EXIT.ok : EXIT.failed
}

/** What runs on every machine. */
const runningNow = async (run: DeployRun, phase: 'adopt' | 'plan') => {
  const state = await desiredNow(run)
  const found: { host: DeployHost; seen: readonly SeenNode[] }[] = []
  const succeeded = await eachMachine(run, phase, state, async ({ host, seen }) => {
    found.push({ host, seen })
    return true
  })
  return { state, found, succeeded }
}

/** Records what runs. */
export const deployAdopt = async (run: DeployRun): Promise<number> => {
  const { found, succeeded } = await runningNow(run, 'adopt')
  // What cannot be asked still runs, for all that is known: the record stays as it is.
  if (!succeeded) throw new MachineFailure('a machine could not be asked, so nothing was recorded')
  const used = found.filter(({ seen }) => seen.length > 0)
  const nodes = used.flatMap(({ host, seen }) => seen.map(({ name, digest }) => ({ name, host: host.name, digest })))
  for (const { name } of nodes) await run.print.node({ phase: 'adopt', state: 'done', id: `node.${name}` })
  const record: RunningState = { version: 1, hosts: used.map(({ host }) => host), nodes }
  const commit = await commitRecord(run.terminal.cwd, RUNNING_FILE, record, 'Record what runs')
  await run.print.result({ nodes: nodes.length, ...(commit !== undefined && { commit }) }, [`${nodes.length} run`])
  return EXIT.ok
}

/** Says what runs where. */
export const deployStatus = async (run: DeployRun): Promise<number> => {
  const { state, found, succeeded } = await runningNow(run, 'plan')
  const nodes = found.flatMap(({ host, seen }) => {
    const names = new Set([...seen, ...state.nodes.filter(node => node.host === host.name)].map(({ name }) => name))
    return [...names].map(name => {
      const here = seen.find(each => each.name === name)
      return { name, host: host.name, state: !here ? 'missing' : here.running > 0 ? 'running' : 'stopped' }
    })
  })
  await run.print.result(
    { nodes },
    nodes.map(({ name, host, state: now }) => `${name} on ${host}: ${now}`),
  )
  return succeeded ? EXIT.ok : EXIT.failed
}
