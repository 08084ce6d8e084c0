const DOLLAR = 1_000_000n

/** An amount of dollars in millionths. */
export const microsOf = (dollars: string): bigint => {
  const [whole = '0', part = ''] = dollars.split('.')
  return BigInt(whole) * DOLLAR + BigInt(part.padEnd(6, '0').slice(0, 6))
}

/** Units of a currency in millionths of a dollar, rounded up: a limit is never passed by a fraction. */
export const microsOfUnits = (units: bigint, decimals: number): bigint => {
  const one = 10n ** BigInt(decimals)
  return (units * DOLLAR + one - 1n) / one
}

/** Millionths of a dollar as a decimal without needless zeros. */
export const dollarsOf = (micros: bigint): string => {
  const part = (micros % DOLLAR).toString().padStart(6, '0').replace(/0+$/, '')
  return `${micros / DOLLAR}${part && `.${part}`}`
}
