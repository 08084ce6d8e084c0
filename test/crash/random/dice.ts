/** Numbers that look random and are the same for the same seed. */
export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** The next number from 0 up to 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  below(most: number): number {
    return Math.floor(this.next() * most)
  }

  chance(likely: number): boolean {
    return this.next() < likely
  }

  pick<T>(list: readonly [T, ...T[]]): T {
    return list[this.below(list.length)] ?? list[0]
  }

  /** One of the names, each as likely as its weight says. */
  weighed<T extends string>(weights: { readonly [name in T]: number }): T {
    const entries = Object.entries(weights) as [T, number][]
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0)
    return entries.find(([, weight]) => (left -= weight) < 0)?.[0] ?? entries[0]![0]
  }
}
