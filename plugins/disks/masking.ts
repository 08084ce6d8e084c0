import type { DiskSecrets } from './entry.js'

const HIDDEN = '***'
const SHORTEST = 4

/** A text without the secret values of a share, in the forms in which programs repeat them. */
export const maskedSecrets = (text: string, secrets: DiskSecrets): string =>
  Object.values(secrets)
    .flatMap((value: string) => [value, encodeURIComponent(value), ...value.split('\n')])
    .filter(value => value.length >= SHORTEST)
    .sort((one, other) => other.length - one.length)
    .reduce((left, value) => left.replaceAll(value, HIDDEN), text)
