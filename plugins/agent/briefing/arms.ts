import { hash } from 'node:crypto'

/** The cohort of an experiment. */
export const cohortOf = (text: string, share: number): string => `${text} without ${share}`

const RANGE = 2 ** 32

/** Whether a unit is in the arm without the change: always the same for one unit and share. */
export const isHeldOut = (experiment: string, unit: string, share: number): boolean =>
  parseInt(hash('sha256', `${experiment}:${unit}`, 'hex').slice(0, 8), 16) / RANGE < share
