import type { ProviderRow } from '../../../../providers/contract.js'
import type { RoutedAccount, TranslatorStatus } from '../../../../routed/contract.js'
import { askDaemon } from '../../data/api.js'
import { AskButton, FormButton } from '../../ui/dialog.js'
import { agoOf, momentOf, visibleName } from '../../ui/format.js'
import { Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { AccountWindows } from './account-windows.js'
import { routedChanged, RoutedSignIn } from './routed-sign-in.js'

type State = TranslatorStatus['state']
const STATES: { readonly [S in State]: readonly [tone: '' | 'good' | 'warn' | 'bad' | 'busy', word: string] } = {
  stopped: ['', 'Stopped'],
  starting: ['busy', 'Starting'],
  running: ['good', 'Running'],
  failed: ['bad', 'Failed'],
}

const many = (count: number, one: string): string => `${count} ${one}${count === 1 ? '' : 's'}`

/** How the translator stands, and what it serves. */
const Translator = () => {
  const status = useQuery('translator', ['routed'], () => askDaemon('GET /translator'))
  return (
    <Loaded query={status}>
      {({ state, since, restarts, nextTryAt, detail, serves, requests }) => (
        <ul class="items">
          <Item
            title="Translator"
            state={STATES[state]}
            detail={
              <>
                {state === 'stopped' && <div>There is nothing to serve.</div>}
                {since !== undefined && (
                  <div>
                    {`Since ${momentOf(since)}: ${many(requests.total, 'request')}, ${requests.failed} failed, `
                      + `${requests.retried} sent again, ${requests.inFlight} running`}
                  </div>
                )}
                {restarts > 0 && <div>{`Started again ${many(restarts, 'time')}.`}</div>}
                {nextTryAt !== undefined && <div>{`It is started again ${momentOf(nextTryAt)}.`}</div>}
                {state === 'failed' && detail !== undefined && <div>{visibleName(detail)}</div>}
                {serves.map(({ provider, protocol, accounts, models }) => (
                  <div key={provider}>
                    {`${visibleName(provider)}: ${protocol}, `}
                    {accounts > 0 && `${many(accounts, 'account')}, `}
                    {many(models, 'model')}
                  </div>
                ))}
              </>
            }
          />
        </ul>
      )}
    </Loaded>
  )
}

interface RoutedRowProps {
  readonly provider: string
  readonly account: RoutedAccount
  readonly maintains: boolean
}

const RoutedRow = ({ provider, account, maintains }: RoutedRowProps) => {
  const { name, label, needsReauth, detail, usage } = account
  const shown = visibleName(label)
  return (
    <Item
      title={shown}
      state={needsReauth ? ['warn', 'Sign in again'] : detail ? ['bad', 'Refused'] : ['good', 'Connected']}
      detail={
        <>
          {detail && <div>{visibleName(detail)}</div>}
          {usage && (
            <>
              <AccountWindows usage={usage} />
              <div>Measured {agoOf(usage.measuredAt)}</div>
            </>
          )}
        </>
      }
    >
      {maintains && (
        <AskButton
          label="Disconnect"
          about={shown}
          title={`Disconnect ${shown}?`}
          work={async () => {
            await askDaemon('POST /translator/{provider}/disconnect', { provider, name })
            routedChanged()
          }}
        >
          <p>Its credential is destroyed. Answers that are being written end as usual.</p>
        </AskButton>
      )}
    </Item>
  )
}

/** The routed providers: their accounts, and the translator through which turns use them. */
export const RoutedSection = ({ providers, maintains }: { providers: readonly ProviderRow[]; maintains: boolean }) => {
  const accounts = useQuery('translator/accounts', ['routed', 'accounts'], () => askDaemon('GET /translator/accounts'))
  return (
    <>
      <section aria-labelledby="translator">
        <div class="section-head">
          <h2 id="translator">Routed providers</h2>
        </div>
        <p class="quiet">Turns use these accounts through a translator of model protocols.</p>
        <Translator />
      </section>
      {providers.map(({ id, label }) => (
        <section key={id} aria-labelledby={`accounts-of-${id}`}>
          <div class="section-head">
            <h2 id={`accounts-of-${id}`}>{visibleName(label)}</h2>
            {maintains && (
              <FormButton
                label="Connect an account"
                about={`of ${visibleName(label)}`}
                form={close => <RoutedSignIn provider={id} label={label} close={close} />}
              />
            )}
          </div>
          <Loaded query={accounts}>
            {all =>
              (all[id] ?? []).length === 0 ? (
                <p class="quiet">No account is connected.</p>
              ) : (
                <ul class="items">
                  {all[id]!.map(account => (
                    <RoutedRow key={account.name} provider={id} account={account} maintains={maintains} />
                  ))}
                </ul>
              )
            }
          </Loaded>
        </section>
      ))}
    </>
  )
}
