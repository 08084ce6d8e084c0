import { ControlGroups, type ControlGroup } from './cgroup.js'
import { ProgramGroup } from './group.js'
import {
  filesOf,
  heldBy,
  machineUse,
  procBehind,
  processesOf,
  shareOf,
  terminalsBehind,
  terminalsOf,
  threadsOf,
  tmpfsBehind,
  type GroupUse,
} from './processes.js'
import type { WallLimits } from './settings.js'

const LOOK_MS = 50
/** Looking at many processes takes about this part of the time, unless that is too seldom to stop what grows fast. */
const LOOKING_SHARE = 0.05
const LONGEST_REST_MS = 100

interface Kept {
  readonly group: ProgramGroup
  /** Made with the first program. */
  control?: ControlGroup | undefined
  looking: boolean
  nextLook: number
}

/**
 * Keeps the programs of each conversation within the limits.
 *
 * What the whole machine uses is read many times a second while programs run; only when that is more than a group may
 * use are the group's own processes looked at.
 */
export class Limiter {
  readonly #limits: WallLimits
  readonly #controls: ControlGroups | undefined
  readonly #kept = new Map<string, Kept>()
  readonly #busy = new Set<Kept>()
  #timer: NodeJS.Timeout | undefined

  constructor(limits: WallLimits, controls?: ControlGroups) {
    this.#limits = limits
    this.#controls = controls
  }

  /** The programs of a conversation. */
  of(key: string): ProgramGroup {
    return (this.#kept.get(key) ?? this.#make(key)).group
  }

  /** Whether no program of a conversation runs, and no turn. */
  idle(key: string): boolean {
    return this.#kept.get(key)?.group.idle ?? true
  }

  #make(key: string): Kept {
    const group = new ProgramGroup({
      limits: this.#limits,
      procs: () => (kept.control ??= this.#controls?.group(this.#limits))?.procs,
      exceeded: () => kept.control?.exceeded(),
      busy: busy => this.#change(key, kept, busy),
    })
    const kept: Kept = { group, looking: false, nextLook: 0 }
    this.#kept.set(key, kept)
    return kept
  }

  #change(key: string, kept: Kept, busy: boolean): void {
    if (busy) this.#busy.add(kept)
    else this.#busy.delete(kept)
    if (this.#busy.size && !this.#timer) this.#timer = setInterval(() => this.#tick(), LOOK_MS).unref()
    if (!this.#busy.size) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
    if (!kept.group.idle || this.#kept.get(key) !== kept) return
    this.#kept.delete(key)
    kept.control?.remove()
    kept.control = undefined
  }

  #tick(): void {
    const machine = machineUse()
    for (const kept of this.#busy) {
      const exceeded = kept.control?.exceeded()
      if (exceeded) kept.group.exceed(exceeded)
      else this.#look(kept, machine)
    }
  }

  #look(kept: Kept, { processes, openFiles, pseudoTerminals, memory }: GroupUse): void {
    const { group } = kept
    const { limits } = group
    const began = performance.now()
    const counts = processes > limits.processes || openFiles > limits.openFiles
    const opens = pseudoTerminals > limits.pseudoTerminals
    if (kept.looking || began < kept.nextLook || !(counts || opens || memory > limits.memory)) return
    const procs = group.pids.flatMap(pid => procBehind(pid) ?? [])
    const folders = procs.flatMap(processesOf)
    const found: [keyof WallLimits, number] | undefined =
      (counts ? countsOver(folders, limits, openFiles) : undefined)
      ?? (opens ? terminalsOver(procs, folders, limits.pseudoTerminals) : undefined)
    if (found) group.exceed(...found)
    else if (memory > limits.memory) {
      kept.looking = true
      void memoryOver(procs, folders, limits.memory)
        .then(bytes => void (bytes && group.exceed('memory', Number.isFinite(bytes) ? bytes : undefined)))
        .finally(() => (kept.looking = false))
    }
    const now = performance.now()
    kept.nextLook = now + Math.min(LONGEST_REST_MS, (now - began) / LOOKING_SHARE)
  }
}

const countsOver = (
  folders: readonly string[],
  limits: WallLimits,
  openFiles: number,
): ['processes' | 'openFiles', number] | undefined => {
  // Threads are looked at only when the processes alone are not too many already.
  const tasks = folders.length > limits.processes ? folders.length : sum(folders.map(threadsOf))
  if (tasks > limits.processes) return ['processes', tasks]
  if (openFiles <= limits.openFiles) return undefined
  const files = sum(folders.map(filesOf))
  return files > limits.openFiles ? ['openFiles', files] : undefined
}

/** The pseudo-terminals that processes hold together, when they are more than they may. */
const terminalsOver = (
  procs: readonly string[],
  folders: readonly string[],
  most: number,
): ['pseudoTerminals', number] | undefined => {
  const named = sum(procs.map(terminalsBehind))
  const held = named > most ? named : sum(folders.map(terminalsOf))
  return held > most ? ['pseudoTerminals', held] : undefined
}

/** The memory that processes hold together, when it is more than they may. */
const memoryOver = async (
  procs: readonly string[],
  folders: readonly string[],
  most: number,
): Promise<number | undefined> => {
  const held = folders.map(heldBy)
  const files = sum(procs.map(tmpfsBehind))
  const rough = sum(held) + files
  if (rough <= most) return undefined
  const largest = Math.max(files, ...held)
  if (largest > most) return largest
  // Children of a large process share its pages: counted for each, an honest build would be too large.
  let exact = files
  for (const folder of folders) exact += await shareOf(folder)
  return exact > most ? exact : undefined
}

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0)
