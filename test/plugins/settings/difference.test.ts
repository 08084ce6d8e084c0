import t from 'tap'
import {
  controlNeeded,
  differenceOf,
  meanOf,
  quantileOfT,
  type Sample,
} from '../../../plugins/settings/savings/difference.js'

const sampleOf = (values: readonly number[]): Sample => ({
  units: values.length,
  sum: values.reduce((sum, value) => sum + value, 0),
  squares: values.reduce((sum, value) => sum + value * value, 0),
})
/** Even numbers from 0 to 1, the same ones each time. */
const evenly = (seed: number) => () => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return (seed + 0.5) / 2 ** 32
}
const normal = (next: () => number): number => Math.sqrt(-2 * Math.log(next())) * Math.cos(2 * Math.PI * next())
/** As the lengths of answers are: many short ones, a few very long ones. */
const lengths = (next: () => number, count: number, scale = 1): number[] =>
  Array.from({ length: count }, () => Math.round(900 * scale * Math.exp(0.8 * normal(next))))

t.test('the quantiles are those of tables', t => {
  for (const [freedom, quantile] of [
    [5, 2.571],
    [10, 2.228],
    [30, 2.042],
    [120, 1.98],
    [100_000, 1.96],
  ] as const)
    t.ok(Math.abs(quantileOfT(freedom) - quantile) < 0.005, `${freedom}: ${quantileOfT(freedom)}`)
  t.end()
})

t.test('a comparison is that of the textbook', t => {
  const one = [27.5, 21, 19, 23.6, 17, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19, 21.7, 21.4]
  const other = [27.1, 22, 20.8, 23.4, 23.4, 23.5, 25.8, 22, 24.8, 20.2, 21.9, 22.1, 22.9, 30.3, 23.4]
  // Welch's t is -2.46 with 25.0 degrees of freedom: the interval of the difference is about -4.13 to -0.36.
  const { delta, margin } = differenceOf(sampleOf(one), sampleOf(other), 10)!
  t.ok(Math.abs(delta + 2.75) < 0.2, `${delta}`)
  t.ok(Math.abs(margin - 2.06) < 0.25, `${margin}`)
  t.equal(differenceOf(sampleOf(one), sampleOf(other), 16), undefined, 'too few are not compared')
  t.end()
})

t.test('where nothing differs, a difference is seen in about one comparison of twenty', t => {
  const next = evenly(7)
  let seen = 0
  const runs = 2_000
  for (let run = 0; run < runs; run++) {
    const { delta, margin } = differenceOf(sampleOf(lengths(next, 160)), sampleOf(lengths(next, 40)), 30)!
    if (Math.abs(delta) > margin) seen++
  }
  t.ok(seen / runs > 0.02 && seen / runs < 0.08, `${seen} of ${runs}`)
  t.end()
})

t.test('as many turns as are said to be missing are enough to tell a difference of a tenth', t => {
  const next = evenly(11)
  const [on, off] = [lengths(next, 120), lengths(next, 30)]
  t.equal(controlNeeded(sampleOf([]), sampleOf([]), 30), 30)
  t.equal(controlNeeded(sampleOf(on), sampleOf(off.slice(0, 10)), 30), 20)
  const missing = controlNeeded(sampleOf(on), sampleOf(off), 30)
  t.ok(missing > 100, `${missing}`)
  const more = [sampleOf(lengths(next, 4 * (30 + missing))), sampleOf(lengths(next, 30 + missing))] as const
  const { margin } = differenceOf(...more, 30)!
  t.ok(margin < 0.13 * meanOf(more[1]) && margin > 0.07 * meanOf(more[1]), `${margin / meanOf(more[1])}`)
  const halved = sampleOf(lengths(next, 200, 0.5))
  t.equal(controlNeeded(halved, sampleOf(lengths(next, 50)), 30), 0, 'a large difference is told early')
  t.end()
})
