import { useSignal } from '@preact/signals'
import type { ChoreLedgerEntry, ProbeResult } from '../../../../chores/contract.js'
import { askDaemon } from '../../data/api.js'
import { sha256 } from '../../data/hash.js'
import { refetch } from '../../data/queries.js'
import { DialogForm } from '../../ui/dialog.js'
import { ChoiceField } from '../../ui/fields.js'

const DAY_MS = 86_400_000

/** The digest of what was found: another one means that a conclusion is old. */
const evidenceDigest = ({ state, facts }: ProbeResult): Promise<string> =>
  sha256(new TextEncoder().encode(JSON.stringify({ state, facts })))

interface ConcludeFormProps {
  readonly repo: string
  readonly result: ProbeResult
  readonly label: string
  readonly close: () => void
}

/** Stores what somebody concludes of a measurement. */
export const ConcludeForm = ({ repo, result, label, close }: ConcludeFormProps) => {
  const outcome = useSignal<ChoreLedgerEntry['outcome']>('reported')
  const days = useSignal('0')
  return (
    <DialogForm
      title={`Conclude: ${label}`}
      verb="Conclude"
      close={close}
      work={async () => {
        const now = Date.now()
        await askDaemon('POST /chores/ledger', {
          ...{ repo, chore: result.id, ranAt: now, runId: '', outcome: outcome.value },
          digest: await evidenceDigest(result),
          ...(days.value !== '0' && { snoozedUntil: now + Number(days.value) * DAY_MS }),
        })
        refetch(new Set(['chores']))
      }}
    >
      <ChoiceField
        label="What follows"
        value={outcome}
        choices={[
          ['reported', 'There is something to do'],
          ['acted', 'It was done'],
          ['clean', 'There is nothing to do'],
        ]}
      />
      <ChoiceField
        label="Put it off"
        value={days}
        choices={[
          ['0', 'No'],
          ['7', 'For a week'],
          ['30', 'For 30 days'],
        ]}
      />
    </DialogForm>
  )
}
