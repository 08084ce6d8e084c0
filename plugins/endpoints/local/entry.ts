import type { CapabilityRecord } from '../../capabilities/contract.js'
import type { CatalogueModel } from './contract.js'
import type { LocalModel } from './fit.js'

/** The kind of capability that a local model is stored as. */
export const LOCAL_KIND = 'localmodel'
/** The model of an entry whose file the person names. */
export const CUSTOM = 'custom'

/** A local model as it is stored. */
export interface LocalEntry {
  readonly id: string
  readonly label: string
  /** A model of the catalogue, or `custom`. */
  readonly model: string
  readonly url?: string
  readonly sha256?: string
  readonly context?: number
  readonly enabled: boolean
}

/** A local model with its file. */
export interface ResolvedModel extends LocalModel {
  /** What a turn names. */
  readonly name: string
  readonly tier?: CatalogueModel['tier']
}

/** The local model of a capability; undefined when its record does not describe one. */
export const localOf = ({ id, label, config }: CapabilityRecord): LocalEntry | undefined => {
  const { model, url, sha256, context, enabled } = config
  if (typeof model !== 'string' || !model) return undefined
  return {
    id,
    label: label || id,
    model,
    ...(typeof url === 'string' && { url }),
    ...(typeof sha256 === 'string' && { sha256 }),
    ...(typeof context === 'number' && { context }),
    enabled: enabled !== false,
  }
}

/** The fields of an entry that are stored as its config. */
export const configOf = ({ id: _id, label: _label, ...config }: LocalEntry): Omit<LocalEntry, 'id' | 'label'> => config

/** Whether two entries run the same: their names may differ. */
export const runsTheSame = (one: LocalEntry, other: LocalEntry): boolean =>
  JSON.stringify([one.model, one.url, one.sha256, one.context, one.enabled])
  === JSON.stringify([other.model, other.url, other.sha256, other.context, other.enabled])

/** The model of an entry with its file; undefined when the catalogue no longer has it. */
export const modelOfEntry = (
  { model, url, sha256 }: Pick<LocalEntry, 'model' | 'url' | 'sha256'>,
  catalogue: readonly CatalogueModel[],
): ResolvedModel | undefined => {
  if (model === CUSTOM) return url === undefined ? undefined : { name: nameOf(url), url, ...(sha256 && { sha256 }) }
  const found = catalogue.find(each => each.model === model)
  return found && { ...found, name: found.model }
}

const nameOf = (url: string): string => {
  const last = URL.parse(url)?.pathname.split('/').at(-1) ?? ''
  return (last.replace(/\.gguf$/i, '').replace(/[^\w.-]/g, '') || CUSTOM).slice(0, 200)
}
