import { refuse } from '../../../sdk/index.js'
import { isEntryName } from '../../../sdk/node/deploy/entries.js'
import type { CapabilityStatus, KindEntry } from '../../capabilities/contract.js'
import type { InventoryKind } from '../contract.js'

/** The state of a connection, as of now. */
export const kindStatus = (state: CapabilityStatus['state'], detail?: string): CapabilityStatus => ({
  state,
  ...(detail !== undefined && { detail }),
  checkedAt: Date.now(),
})

/** The id of a connection as the name of its entry; refuses one that no entry may have. */
export const entryNameOf = (id: string): string =>
  isEntryName(id)
    ? id
    : refuse('invalid', `id: expected letters, digits and _, at most 60, as it names an entry, found ${id}`, {
        errors: [{ path: 'id', expected: 'letters, digits and _, at most 60' }],
      })

/** The fields of a connection as options of an entry: those that are numbers become numbers. */
export const optionValues = (
  known: InventoryKind | undefined,
  options: KindEntry['config'],
): { [option: string]: string | number } =>
  Object.fromEntries(
    Object.entries(options).map(([key, value]) => {
      const isNumber = known?.options.find(each => each.key === key)?.type === 'number'
      return [key, isNumber && /^\d{1,9}$/.test(String(value)) ? Number(value) : String(value)]
    }),
  )
