import { stat } from 'node:fs/promises'
import { Refusal } from '../../../sdk/index.js'
import { programHome, removeProgramHome, renameProgramHome } from '../../../sdk/node/wall/home.js'
import type { AgentRuntime } from '../contract.js'
import type { CapabilityStatus, ShownConfig } from '../records/contract.js'
import { activeStatus, failingStatus, type KindHandler, type OpenEntry } from '../records/kinds.js'
import { greet } from './handshake.js'
import { assertInstalled, programBehindWall, type ConnectedProgram, type ProgramHost } from './program-wall.js'
import { commandWords, variablesOf } from './words.js'

/** How long a program that answered counts as one that would answer again. */
const TRUSTED_MS = 300_000
/** How long a program may start for nobody but a list of connections. */
const PROBE_MS = 300_000

const text = (config: ShownConfig, field: string): string => String(config[field] ?? '')

/** The program of a connection as it is started. */
const programOf = ({ id, config, secrets }: OpenEntry): ConnectedProgram => {
  const [program, ...args] = commandWords('command', text(config, 'command'))
  return { id, program, args, env: variablesOf('env', secrets.env) }
}

/** How a turn starts the agent program of a connection. */
export const runtimeOf = (entry: OpenEntry, label: string): AgentRuntime => {
  const { program, args, env } = programOf(entry)
  const login = text(entry.config, 'loginCommand')
  return { id: entry.id, label, command: [program, ...args], env: { ...env }, ...(login && { loginCommand: login }) }
}

/** Agent programs that speak the Agent Client Protocol. */
export const agentKind = (host: ProgramHost): KindHandler => {
  const { place } = host
  const answered = new Map<string, number>()
  const probing = new Map<string, AbortController>()
  const meet = async (entry: OpenEntry, signal: AbortSignal, waits?: (how: string) => void) => {
    const program = programOf(entry)
    await assertInstalled(place, program)
    const given = { program: program.program, signal, ...(waits && { waits }) }
    const greeting = await greet(await programBehindWall(host, program), given)
    answered.set(entry.id, Date.now())
    return greeting
  }
  const probe = async (entry: OpenEntry, signal: AbortSignal): Promise<void> => {
    const stop = new AbortController()
    probing.set(entry.id, stop)
    try {
      await meet(entry, AbortSignal.any([signal, stop.signal, AbortSignal.timeout(PROBE_MS)]))
    } finally {
      if (probing.get(entry.id) === stop) probing.delete(entry.id)
    }
  }
  return {
    kind: 'agent',
    // As long as the program shows life.
    applyMs: Infinity,
    secretFields: () => ['env'],
    mainSecret: () => 'env',
    label: config => text(config, 'name') || undefined,
    check: async entry => {
      if (entry.config.loginCommand !== undefined) commandWords('loginCommand', text(entry.config, 'loginCommand'))
      await assertInstalled(place, programOf(entry))
    },
    apply: async (entry, report, signal) => {
      const { program } = programOf(entry)
      const isNew = (await stat(programHome(place.data, entry.id)).catch(() => undefined)) === undefined
      report(`starting ${program} behind the wall`)
      if (isNew) report('it has a home folder of its own, in which its sign-ins stay')
      const waits = (how: string) => report(`${program} has not answered ${how}; removing ${entry.id} ends the attempt`)
      const { name, version, signIns } = await meet(entry, signal, waits)
      const called = name === undefined ? program : `${name}${version === undefined ? '' : ` ${version}`}`
      report(`${called} speaks the Agent Client Protocol`)
      if (signIns.length > 0) report(`it signs in with: ${signIns.join(', ')}`)
      return activeStatus()
    },
    probe: async (entry, signal, thorough): Promise<CapabilityStatus> => {
      try {
        const recent = Date.now() - (answered.get(entry.id) ?? 0) < TRUSTED_MS
        if (recent && !thorough) await assertInstalled(place, programOf(entry))
        else await probe(entry, signal)
        return activeStatus()
      } catch (error) {
        if ((error as Error).name === 'TimeoutError')
          return failingStatus(`it works, but has not answered within ${PROBE_MS / 60_000} minutes`, 'starting')
        if (!(error instanceof Refusal)) throw error
        return failingStatus(error.message, error.reason === 'missing-program' ? 'missing-program' : 'crashed')
      }
    },
    recorded: async ({ id }) => void answered.set(id, Date.now()),
    forget: async id => {
      answered.delete(id)
      probing.get(id)?.abort()
      await removeProgramHome(place.data, id)
    },
    rename: async (id, to) => {
      answered.delete(id)
      await renameProgramHome(place.data, id, to)
    },
  }
}
