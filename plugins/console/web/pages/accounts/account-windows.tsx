import type { AccountUsage } from '../../../../accounts/contract.js'
import { momentOf, visibleName } from '../../ui/format.js'

/** How full the limits of an account are. */
export const AccountWindows = ({ usage }: { usage: AccountUsage }) => (
  <>
    {usage.windows.map(({ kind, label, utilization, resetsAt }) => {
      const name = visibleName(label ?? kind)
      const opens = resetsAt === undefined ? '' : `, opens again ${momentOf(resetsAt)}`
      return (
        <div key={kind}>
          <meter aria-label={name} min={0} max={100} high={90} value={utilization} />{' '}
          {`${name}: ${Math.round(utilization)} % used${opens}`}
        </div>
      )
    })}
  </>
)
