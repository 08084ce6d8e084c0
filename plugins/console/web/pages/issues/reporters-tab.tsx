import { useSignal } from '@preact/signals'
import type { Reporter } from '../../../../issues/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { AskButton, DialogForm, FormButton } from '../../ui/dialog.js'
import { CheckField, TextField } from '../../ui/fields.js'
import { agoOf, countText, visibleName } from '../../ui/format.js'
import { Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { Copyable } from '../../ui/copy.js'

const changed = () => refetch(new Set(['issues']))

const REACH = {
  public: 'Programs anywhere can report to this sandbox.',
  machine: 'Only programs of this machine can report: the sandbox has no public address.',
  none: 'No program can reach this sandbox now.',
} as const

const ReporterForm = ({ reporter, close }: { reporter?: Reporter; close: () => void }) => {
  const label = useSignal(reporter?.label ?? '')
  const repo = useSignal(reporter?.repo ?? '')
  const origins = useSignal(reporter?.allowedOrigins.join('\n') ?? '')
  const daily = useSignal(String(reporter?.dailyMax ?? 20_000))
  const enabled = useSignal(reporter?.enabled ?? true)
  const keepUser = useSignal(reporter?.keepUser ?? false)
  const rotate = useSignal(false)
  return (
    <DialogForm
      title={reporter ? `Change ${visibleName(reporter.label)}` : 'Add a reporter'}
      verb="Save"
      close={close}
      work={async () => {
        await askDaemon('POST /issues/reporters', {
          ...{ label: label.value, enabled: enabled.value, keepUser: keepUser.value, dailyMax: Number(daily.value) },
          allowedOrigins: origins.value.split('\n').flatMap(line => line.trim() || []),
          ...(repo.value.trim() && { repo: repo.value.trim() }),
          ...(reporter && { id: reporter.id, rotate: rotate.value }),
        })
        changed()
      }}
    >
      <TextField label="Name" required value={label} maxLength={60} />
      <TextField label="Repository" value={repo} hint="Where its code is: its path, or root. Agents fix it there." />
      <TextField
        label="Origins of pages"
        rows={3}
        value={origins}
        hint="One a line, such as https://shop.example. Empty: any page or program with the key."
      />
      <TextField label="Events a day" type="number" min="1" max="1000000" required value={daily} />
      <CheckField label="It may report" value={enabled} />
      <CheckField label="Keep who used the program as it says, not only as a hash" value={keepUser} />
      {reporter && <CheckField label="Give it a new key: the old one stops at once" value={rotate} />}
    </DialogForm>
  )
}

const ReporterRow = ({ reporter }: { reporter: Reporter }) => {
  const { id, label, repo, dsn, enabled, today, lastEventAt, dailyMax } = reporter
  const purge = useSignal(false)
  return (
    <Item
      title={visibleName(label)}
      state={enabled ? undefined : ['warn', 'Switched off']}
      detail={
        <div class="stack">
          <div>
            Number {id}
            {repo !== undefined && `, repository ${visibleName(repo)}`}
            {lastEventAt === undefined ? ', nothing reported yet' : `, last event ${agoOf(lastEventAt)}`}
          </div>
          <div>
            <Copyable text={dsn} what="the address" />
          </div>
          <div>
            Today {countText(today.accepted)} of {countText(dailyMax)} events, {countText(today.limited)} beyond its
            limits, {countText(today.dropped)} other items
          </div>
        </div>
      }
    >
      <FormButton label="Edit" about={label} form={close => <ReporterForm reporter={reporter} close={close} />} />
      <AskButton
        label="Remove"
        about={label}
        title={`Remove ${visibleName(label)}?`}
        work={async () => {
          await askDaemon('DELETE /issues/reporters/{id}', { id, purge: purge.value })
          changed()
        }}
      >
        <p>Its key stops at once.</p>
        <CheckField label="Delete its issues too" value={purge} />
      </AskButton>
    </Item>
  )
}

/** The programs that report, with what each is configured with. */
export const ReportersTab = () => {
  const list = useQuery('reporters', ['issues'], () => askDaemon('GET /issues/reporters'))
  return (
    <>
      <FormButton label="Add a reporter" primary form={close => <ReporterForm close={close} />} />
      <Loaded query={list}>
        {({ reporters, reach }) => (
          <>
            <p class="quiet">{REACH[reach]} A program needs an SDK of Sentry and the address below as its DSN.</p>
            <ul class="items" aria-label="Reporters">
              {reporters.map(reporter => (
                <ReporterRow key={reporter.id} reporter={reporter} />
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </>
  )
}
