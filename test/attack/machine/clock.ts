import { readFileSync } from 'node:fs'

/**
 * Loaded into a daemon before anything else: shifts its wall clock by the offset in the file, from one reading to the
 * next.
 */
const file = process.env.SANDBOX_TEST_CLOCK
const real = Date.now

const offset = (): number => {
  try {
    return Number(readFileSync(file!, 'utf8')) || 0
  } catch {
    return 0
  }
}

if (file) {
  const now = (): number => real() + offset()
  globalThis.Date = new Proxy(Date, {
    construct: (target, given, made) => Reflect.construct(target, given.length === 0 ? [now()] : given, made) as Date,
    get: (target, name) => (name === 'now' ? now : (Reflect.get(target, name) as unknown)),
  })
}
