import { askDaemon } from '../../data/api.js'

/** Throws with what could not be done, and why. */
export const throwFailures = (list: readonly { readonly id: string; readonly message: string }[] | undefined): void => {
  if (list?.length) throw new Error(list.map(({ id, message }) => `${id}: ${message}`).join('; '))
}

/** Archives conversations, and lists those that could not be archived. */
export const archiveAll = async (ids: string[]): Promise<void> =>
  throwFailures((await askDaemon('POST /agents/archive', { ids })).failed)
