import type { PendingExtension } from '../../../../extensions/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { extensionName } from '../../data/extensions/shown-extensions.js'
import { AskButton } from '../../ui/dialog.js'
import { visibleName } from '../../ui/format.js'
import { Item } from '../../ui/page.js'
import { Copyable } from '../../ui/copy.js'

interface PowersListProps {
  readonly heading: string
  readonly powers: readonly string[]
}

const PowersList = ({ heading, powers }: PowersListProps) =>
  powers.length === 0 ? null : (
    <>
      <h4>{heading}</h4>
      <ul class="plain-list" dir="auto">
        {powers.map(power => (
          <li key={power}>{visibleName(power)}</li>
        ))}
      </ul>
    </>
  )

/** What an extension may do, as sentences: whole, or compared with what was approved before. */
export const PowersView = ({
  powers,
  compared,
}: {
  powers?: readonly string[]
  compared?: { added: readonly string[]; removed: readonly string[]; unchanged: readonly string[] }
}) => {
  if (!compared)
    return powers?.length ? (
      <PowersList heading="It" powers={powers} />
    ) : (
      <p class="quiet small">It asks for nothing beyond its own routes and data.</p>
    )
  const { added, removed, unchanged } = compared
  return (
    <>
      <PowersList heading="New: it" powers={added} />
      <PowersList heading="No longer: it" powers={removed} />
      <PowersList heading="As approved before: it" powers={unchanged} />
    </>
  )
}

/** The digest that binds an approval to what was shown. */
export const DigestLine = ({ digest }: { digest: string }) => (
  <p class="quiet small">
    Digest of this list: <Copyable text={digest} what="the digest" />
  </p>
)

/** An extension that waits, with everything it asks for. */
export const PendingItem = ({ pending, maintains }: { pending: PendingExtension; maintains: boolean }) => {
  const { id, dir, powers, approvedBefore, digest } = pending
  const list = (
    <>
      <PowersView powers={powers} {...(approvedBefore && { compared: pending })} />
      <DigestLine digest={digest} />
    </>
  )
  return (
    <Item
      title={visibleName(extensionName(pending))}
      state={['warn', approvedBefore ? 'Asks for more' : 'New']}
      detail={
        <>
          <div>
            <span class="mono">{visibleName(id)}</span> · <span class="mono">{visibleName(dir)}</span>
          </div>
          {list}
        </>
      }
    >
      {maintains && (
        <AskButton
          label="Approve"
          about={id}
          title={`Approve ${id}?`}
          work={async () => {
            await askDaemon('POST /extensions/{id}/approve', { id, digest })
            refetch(new Set(['extensions']))
          }}
        >
          {list}
          <p>It starts at once. If its manifest has changed since, nothing is approved.</p>
        </AskButton>
      )}
    </Item>
  )
}
