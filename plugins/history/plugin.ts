import type { Contract, Host } from '../../sdk/index.js'
import { historyCalls } from './calls.js'
import { historyContract, type HistoryCalls } from './contract.js'
import { examples } from './examples.js'
import { Restoring } from './restoring.js'
import { SavedPoints } from './saved-points.js'
import { keepSaving } from './saving.js'

export const contract: Contract<HistoryCalls> = { ...historyContract, examples }

/** Saves points of the whole workspace, and brings it back to them. */
export const activate = async (host: Host): Promise<void> => {
  const saved = new SavedPoints(host)
  const restoring = new Restoring(host, saved)
  await saved.points.load()
  host.boot('a restore that was cut off', () => restoring.recover())
  await host.serve(historyContract, historyCalls(host, saved, restoring))
  keepSaving(host, saved, restoring)
}
