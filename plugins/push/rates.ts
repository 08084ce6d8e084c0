import { Failures } from '../../sdk/node/access/failures.js'

const TAG_MS = 5_000
const HOUR_MS = 3_600_000
const MOST_AN_HOUR = 60

const admits = (sent: Failures, key: string): boolean => {
  if (sent.wait(key) !== undefined) return false
  sent.add(key)
  return true
}

/** Limits how often people are interrupted: one notification of a tag in 5 s, 60 on a device in an hour. */
export class PushRates {
  readonly #tags: Failures
  readonly #devices: Failures

  constructor(now: () => number = Date.now) {
    this.#tags = new Failures(1, TAG_MS, now)
    this.#devices = new Failures(MOST_AN_HOUR, HOUR_MS, now)
  }

  /** Whether a person may be told of a tag now, which counts. */
  admitsTag(person: string, tag: string): boolean {
    return admits(this.#tags, JSON.stringify([person, tag]))
  }

  /** Whether a device may be sent something now, which counts. */
  admitsDevice(id: string): boolean {
    return admits(this.#devices, id)
  }
}
