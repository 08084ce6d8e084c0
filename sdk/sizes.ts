const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** A number of bytes in the largest unit in which it is at least 1. */
export const bytesWords = (bytes: number): string => {
  const unit = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)))
  const value = bytes / 1024 ** unit
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`
}

/** A progress bar, filled to `share` (0 to 1). */
export const bar = (share: number, width: number): string => {
  const filled = Math.round(Math.min(1, Math.max(0, share)) * width)
  return `${'█'.repeat(filled)}${'░'.repeat(width - filled)}`
}
