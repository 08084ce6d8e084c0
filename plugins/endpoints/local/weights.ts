import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { sizeOfFile } from './transfer.js'

/** Where a file of weights comes from, and what is known of it before it is here. */
export interface WeightsSource {
  readonly url: string
  readonly sha256?: string
  readonly sizeBytes?: number
}

/** The name of a file of weights: entries of one file share it. */
export const weightsName = ({ url, sha256 }: WeightsSource): string =>
  sha256 ?? `url-${createHash('sha256').update(url).digest('hex')}`

/** Where weights are when they are here. */
export const weightsPath = (folder: string, source: WeightsSource): string =>
  join(folder, `${weightsName(source)}.gguf`)

/** Whether weights are here and checked: a file gets its name only then. */
export const isHeld = async (folder: string, source: WeightsSource): Promise<boolean> => {
  const size = await sizeOfFile(weightsPath(folder, source))
  return source.sizeBytes === undefined ? size > 0 : size === source.sizeBytes
}
