import { signal, useSignal, type Signal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { CiResult, StaleCiKey } from '../../../../secrets/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { DialogForm, DoneDialog } from '../../ui/dialog.js'
import { CheckField, TextField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'
import { Item, type ToneWord } from '../../ui/page.js'

const STATES: { readonly [status in CiResult['status']]: ToneWord } = {
  pushed: ['good', 'Written'],
  unchanged: ['', 'Unchanged'],
  failed: ['bad', 'Failed'],
}

/** The result for each key of each repository. */
const Results = ({ results, stale }: { results: readonly CiResult[]; stale: readonly StaleCiKey[] }) => (
  <>
    <p role="status">
      {results.length === 0
        ? 'The workflow files of these repositories name no value that is stored here.'
        : 'The CI services answered:'}
    </p>
    <ul class="items">
      {results.map(({ repo, key, status, detail }) => (
        <Item
          key={`${repo} ${key}`}
          title={<span class="mono">{visibleName(key)}</span>}
          state={STATES[status] ?? ['', status]}
          detail={`${visibleName(repo)}${detail ? ` · ${visibleName(detail)}` : ''}`}
        />
      ))}
      {stale.map(({ repo, key }) => (
        <Item
          key={`${repo} ${key} stale`}
          title={<span class="mono">{visibleName(key)}</span>}
          state={['warn', 'Left over']}
          detail={`${visibleName(repo)} · it is stored here no longer; remove it at the service`}
        />
      ))}
    </ul>
  </>
)

/** Writes stored values into the CI services of repositories. */
export const CiForm = ({ repos, close }: { repos: readonly string[]; close: () => void }) => {
  const chosen = useMemo(
    () => repos.map((repo): readonly [string, Signal<boolean>] => [repo, signal(repos.length === 1)]),
    [],
  )
  const environment = useSignal('')
  const done = useSignal<{ results: CiResult[]; stale: StaleCiKey[] } | undefined>(undefined)
  if (done.value)
    return (
      <DoneDialog title="Written into CI" close={close}>
        <Results {...done.value} />
      </DoneDialog>
    )
  const write = async () => {
    const targets = chosen
      .filter(([, value]) => value.value)
      .map(([repo]) => ({ repo, ...(environment.value && { environment: environment.value }) }))
    done.value = await askDaemon('POST /secrets/ci', { targets })
    refetch(new Set(['secrets']))
    return 'stays'
  }
  return (
    <DialogForm
      title="Write values into CI"
      close={close}
      verb="Write"
      ready={chosen.some(([, value]) => value.value)}
      work={write}
    >
      <p>
        Each repository gets the values that its workflow files name, as secret variables of its CI service. The token
        is that of the connection to the service.
      </p>
      <fieldset class="stack">
        <legend>Repositories</legend>
        {chosen.map(([repo, value]) => (
          <CheckField key={repo} label={visibleName(repo)} value={value} />
        ))}
      </fieldset>
      <TextField label="Environment" value={environment} hint="Empty: for every job." />
    </DialogForm>
  )
}
