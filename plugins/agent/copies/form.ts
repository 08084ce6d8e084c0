import { createHash } from 'node:crypto'
import { conversionOf, filterIn, withoutFilter, type CheckoutDirs } from '../../../sdk/node/repositories/conversion.js'
import type { CopyForm } from '../../../sdk/node/wall/gitdir.js'

/** The form of a new tree: how it converts its files, and what of them is checked out. */
export interface TreeForm extends CopyForm {
  /** The patterns of a sparse checkout. */
  readonly sparse?: string
}

/** The form of the person's own checkout. */
export const treeFormOf = async (checkout: CheckoutDirs): Promise<TreeForm> => {
  const { forms, filters, attributes, sparse } = await conversionOf(checkout)
  return {
    // A file that git would only warn of is committed all the same.
    settings: [...forms, ...filters, ['core.safecrlf', 'false']],
    attributes,
    ...(sparse !== undefined && { sparse }),
  }
}

/** Identifies a form. */
export const formStamp = (form: TreeForm): string => createHash('sha256').update(JSON.stringify(form)).digest('hex')

/** The same form without a filter: its files have the form of the repository. */
export const formWithout = (form: TreeForm, filter: string): TreeForm => ({
  ...form,
  settings: [...form.settings, ...withoutFilter(filter)],
})

/** The filters that a form has and that are not switched off. */
export const filtersOf = ({ settings }: CopyForm): Set<string> => {
  const filters = new Set<string>()
  for (const [name, value] of settings) {
    if (!name.startsWith('filter.')) continue
    if (value === '') filters.delete(filterIn(name))
    else if (!name.endsWith('.required')) filters.add(filterIn(name))
  }
  return filters
}
