/** A sample: how many, their sum and the sum of their squares. */
export interface Sample {
  readonly units: number
  readonly sum: number
  readonly squares: number
}

/** The difference of two means, with half its 95 % interval. */
export interface MeanDifference {
  readonly delta: number
  readonly margin: number
}

/** The difference that is worth telling, as a part of the mean of the control. */
const WORTH = 0.1
/** The 97.5 % quantile of the normal distribution. */
const Z = 1.959_963_985

export const meanOf = ({ units, sum }: Sample): number => (units === 0 ? 0 : sum / units)

const varianceOf = (sample: Sample): number =>
  sample.units < 2 ? 0 : Math.max(0, (sample.squares - sample.sum * meanOf(sample)) / (sample.units - 1))

/** The 97.5 % quantile of Student's t, from that of the normal distribution (Abramowitz and Stegun, 26.7.5). */
export const quantileOfT = (freedom: number): number =>
  Z
  + (Z ** 3 + Z) / (4 * freedom)
  + (5 * Z ** 5 + 16 * Z ** 3 + 3 * Z) / (96 * freedom ** 2)
  + (3 * Z ** 7 + 19 * Z ** 5 + 17 * Z ** 3 - 15 * Z) / (384 * freedom ** 3)

/** Welch's comparison of two means, which does not assume that both vary alike; undefined: too few to compare. */
export const differenceOf = (on: Sample, off: Sample, least: number): MeanDifference | undefined => {
  if (on.units < Math.max(2, least) || off.units < Math.max(2, least)) return undefined
  const [a, b] = [varianceOf(on) / on.units, varianceOf(off) / off.units]
  const delta = meanOf(on) - meanOf(off)
  if (a + b === 0) return { delta, margin: 0 }
  const freedom = (a + b) ** 2 / (a ** 2 / (on.units - 1) + b ** 2 / (off.units - 1))
  return { delta, margin: quantileOfT(freedom) * Math.sqrt(a + b) }
}

/**
 * How many more of the control are needed until a difference of a tenth of its mean can be told, if both sides go on
 * growing as now; 0: a difference can be told already.
 */
export const controlNeeded = (on: Sample, off: Sample, least: number): number => {
  const missing = Math.max(0, least - off.units)
  const difference = differenceOf(on, off, least)
  if (!difference) return Math.max(missing, 1)
  const { delta, margin } = difference
  const mean = meanOf(off)
  if (Math.abs(delta) > margin || mean === 0 || margin <= WORTH * mean) return 0
  const ratio = on.units / off.units
  const needed = (Z / (WORTH * mean)) ** 2 * (varianceOf(on) / ratio + varianceOf(off))
  return Math.max(1, Math.ceil(needed) - off.units)
}
