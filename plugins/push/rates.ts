const TAG_MS = 5_000
const HOUR_MS = 3_600_000
const MOST_AN_HOUR = 60

/** Limits how often people are interrupted: one notification of a tag in 5 s, 60 on a device in an hour. */
export class PushRates {
  readonly #now: () => number
  /** When a person was last told of a tag. */
  readonly #tags = new Map<string, number>()
  /** When a device was last sent something, oldest first. */
  readonly #sent = new Map<string, number[]>()

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** Whether a person may be told of a tag now, which counts. */
  admitsTag(person: string, tag: string): boolean {
    const now = this.#now()
    for (const [key, at] of this.#tags) if (now - at >= TAG_MS || now < at) this.#tags.delete(key)
    const key = JSON.stringify([person, tag])
    if (this.#tags.has(key)) return false
    this.#tags.set(key, now)
    return true
  }

  /** Whether a device may be sent something now, which counts. */
  admitsDevice(id: string): boolean {
    const now = this.#now()
    for (const [device, times] of this.#sent) {
      const recent = times.filter(at => now - at < HOUR_MS && at <= now)
      if (recent.length > 0) this.#sent.set(device, recent)
      else this.#sent.delete(device)
    }
    const times = this.#sent.get(id) ?? []
    if (times.length >= MOST_AN_HOUR) return false
    this.#sent.set(id, [...times, now])
    return true
  }
}
