import type { Caller } from '../../types.js'

/** Whether a caller may know what is connected: a maintainer, or another group by itself. */
export const knowsConnections = ({ role, kind }: Pick<Caller, 'role' | 'kind'>): boolean =>
  kind === 'plugin' || (kind === 'session' && (role === 'maintainer' || role === 'owner'))
