import { refuse } from '../sdk/refusal.js'
import type { BootProgress, BootStep } from '../sdk/kernel.js'

interface Pending {
  readonly plugin: string
  readonly step: BootStep
  readonly run: () => Promise<unknown>
}

const PATIENCE = 10_000
const ENDED = new Set<BootStep['state']>(['done', 'failed'])

/** The boot steps between listening and being ready, and the gate at which calls wait until they are done. */
export class Boot {
  readonly startedAt = Date.now()
  readonly #pending: Pending[] = []
  readonly #done = Promise.withResolvers<void>()
  readonly #failed = new Set<string>()
  #order: readonly string[] = []
  #ready = false
  #ended = false

  /**
   * @param failed Called when a step threw; its group answers 503 from then on.
   * @param moved Called whenever the progress changes.
   */
  constructor(
    readonly failed: (plugin: string, label: string, error: unknown) => void,
    readonly moved = () => {},
  ) {}

  /** Every step has ended. */
  get ready(): boolean {
    return this.#ready
  }

  add(plugin: string, label: string, run: () => Promise<unknown>): void {
    const key = `${plugin}-${this.#pending.filter(one => one.plugin === plugin).length + 1}`
    this.#pending.push({ plugin, step: { key, label, state: 'pending' }, run })
  }

  progress(): BootProgress {
    return { ready: this.#ready, startedAt: this.startedAt, steps: this.#pending.map(({ step }) => ({ ...step })) }
  }

  /**
   * Runs the steps of all groups, sorted by the order of `groups`; a failed step skips the rest of its own group only.
   */
  async run(groups: readonly string[] = []): Promise<void> {
    this.#order = groups
    this.#pending.sort((a, b) => groups.indexOf(a.plugin) - groups.indexOf(b.plugin))
    this.moved()
    for (const { plugin, step, run } of this.#pending) {
      if (this.#ended || this.#failed.has(plugin)) continue
      const began = performance.now()
      step.state = 'running'
      this.moved()
      try {
        await run()
        step.state = 'done'
      } catch (error) {
        this.#failed.add(plugin)
        step.state = 'failed'
        step.detail = error instanceof Error ? error.message : String(error)
        if (!this.#ended) this.failed(plugin, step.label, error)
      }
      step.ms = Math.round(performance.now() - began)
    }
    this.#ready = true
    this.moved()
    this.#done.resolve()
  }

  /** The daemon is stopping: no other step begins, and what the running one lacks is no failure. */
  end(): void {
    this.#ended = true
  }

  /**
   * Whether the gate is open for a group: boot is done, and none of the group's steps failed. For a read it is open
   * once the steps of the group and of those before it are done.
   */
  isOpen(plugin: string, reads = false): boolean {
    return !this.#failed.has(plugin) && (this.#ready || (reads && this.#isPast(this.#order.indexOf(plugin))))
  }

  #isPast(place: number): boolean {
    const ended = ({ plugin, step }: Pending) => this.#order.indexOf(plugin) > place || ENDED.has(step.state)
    return place >= 0 && this.#pending.every(ended)
  }

  /** Waits until boot is done; refuses with 503 after 10 s, or when a step of the group failed. */
  async gate(plugin: string): Promise<void> {
    if (!this.#ready) await this.#waitReady()
    const failed = this.#pending.find(one => one.plugin === plugin && one.step.state === 'failed')
    if (failed) refuse('unavailable', `${plugin} did not start: ${failed.step.label} failed: ${failed.step.detail}`)
  }

  async #waitReady(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<'late'>(resolve => (timer = setTimeout(resolve, PATIENCE, 'late')))
    const outcome = await Promise.race([this.#done.promise, late])
    clearTimeout(timer)
    if (outcome !== 'late') return
    const running = this.#pending.find(({ step }) => step.state === 'running')
    refuse('unavailable', `the sandbox is still starting: ${running?.step.label ?? 'waiting'}`, { retryAfter: 2 })
  }
}
