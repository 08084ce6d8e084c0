import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { reaches } from '../registry.js'

/** A link to the terminal in which something runs, for those who may look into it. */
export const SessionLink = ({ session, label }: { session: string; label: string }) =>
  reaches(person.value?.role, 'maintainer') ? (
    <a href={fragmentOf('terminals', session)}>{label}</a>
  ) : (
    <span class="mono">{session}</span>
  )
