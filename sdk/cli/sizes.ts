/** A bar that is filled so far. */
export const bar = (share: number, width: number): string => {
  const filled = Math.round(Math.min(1, Math.max(0, share)) * width)
  return `${'█'.repeat(filled)}${'░'.repeat(width - filled)}`
}
