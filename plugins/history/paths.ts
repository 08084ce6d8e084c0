import { refuse } from '../../sdk/index.js'
import { isClosedName } from '../../sdk/node/files/closed-names.js'
import { segmentsOf } from '../../sdk/node/files/paths.js'

const CONFIG = ['.sandbox', 'config']

/** A path of a repository in its normal form; paths that points never contain are not found. */
export const checkedScopePath = (scope: string, path: string): string => {
  const segments = segmentsOf(path, { existing: true })
  const config = scope === 'root' && CONFIG.every((part, at) => segments[at] === part)
  if (!config && isClosedName(scope === 'root' ? segments : [scope, ...segments]))
    refuse('not-found', `no point holds ${path} of ${scope}`)
  return segments.join('/')
}
