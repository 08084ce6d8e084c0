import { useSignal } from '@preact/signals'
import type { ProviderAccount, SignInStart } from '../../../../accounts/contract.js'
import type { ProviderRow } from '../../../../providers/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { goTo } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { AskButton, DialogForm, FormButton } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { agoOf, visibleName } from '../../ui/format.js'
import { Item, Loaded, PageFrame } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches, type PageProps } from '../registry.js'
import { AccountWindows } from './account-windows.js'
import { RoutedSection } from './routed-section.js'
import { SignInForm } from './sign-in-form.js'

const changed = (): void => refetch(new Set(['accounts', 'providers']))

const RenameForm = ({
  provider,
  account,
  close,
}: {
  provider: string
  account: ProviderAccount
  close: () => void
}) => {
  const label = useSignal(account.label)
  return (
    <DialogForm
      title={`Rename ${visibleName(account.label)}`}
      close={close}
      verb="Rename"
      work={async () => {
        await askDaemon('POST /accounts/{provider}/rename', { provider, id: account.id, label: label.value })
        changed()
      }}
    >
      <TextField label="Name" value={label} maxLength={80} hint="Empty: the account’s own name." />
    </DialogForm>
  )
}

/** How full the limits of an account are. */
const Windows = ({ account: { usage, rates } }: { account: ProviderAccount }) => (
  <>
    {usage && <AccountWindows usage={usage} />}
    {usage && <div>Measured {agoOf(usage.measuredAt)}</div>}
    {rates && (
      <div>
        By the minute:{' '}
        {rates
          .map(({ kind, label, utilization }) => `${visibleName(label ?? kind)} ${Math.round(utilization)} %`)
          .join(', ')}{' '}
        used
      </div>
    )}
  </>
)

interface AccountRowProps {
  readonly provider: ProviderRow
  readonly account: ProviderAccount
  readonly maintains: boolean
}

const AccountRow = ({ provider, account, maintains }: AccountRowProps) => {
  const { id, label, email, organization, connectedAt, needsReauth, detail } = account
  const shown = visibleName(label)
  const facts = [email !== label && email, organization].filter(fact => typeof fact === 'string')
  return (
    <Item
      title={shown}
      state={needsReauth ? ['warn', 'Sign in again'] : detail ? ['bad', 'Refused'] : ['good', 'Connected']}
      detail={
        <>
          <div>
            {facts.map(fact => `${visibleName(fact)} · `)}
            {connectedAt > 0 && `connected ${agoOf(connectedAt)}`}
          </div>
          {detail && <div>{visibleName(detail)}</div>}
          <Windows account={account} />
        </>
      }
    >
      {maintains && (
        <>
          {needsReauth && (
            <FormButton
              label="Sign in"
              about={`to ${shown} again`}
              form={close => <SignInForm provider={provider} account={id} close={close} />}
            />
          )}
          <FormButton
            label="Rename"
            about={shown}
            form={close => <RenameForm provider={provider.id} account={account} close={close} />}
          />
          <AskButton
            label="Disconnect"
            about={shown}
            title={`Disconnect ${shown}?`}
            work={async () => {
              await askDaemon('POST /accounts/{provider}/disconnect', { provider: provider.id, id })
              changed()
            }}
          >
            <p>Its credential is destroyed. Conversations on it take another account with their next turn.</p>
          </AskButton>
        </>
      )}
    </Item>
  )
}

const ProviderAccounts = ({ provider, maintains }: { provider: ProviderRow; maintains: boolean }) => {
  const { id, label } = provider
  const heading = `accounts-of-${id}`
  const list = useQuery(`accounts/${id}`, ['accounts'], () => askDaemon('GET /accounts/{provider}', { provider: id }))
  return (
    <section aria-labelledby={heading}>
      <div class="section-head">
        <h2 id={heading}>{visibleName(label)}</h2>
        {maintains && (
          <FormButton
            label="Add an account"
            about={`of ${visibleName(label)}`}
            form={close => <SignInForm provider={provider} close={close} />}
          />
        )}
      </div>
      <Loaded query={list}>
        {({ accounts }) =>
          accounts.length === 0 ? (
            <p class="quiet">No account is connected.</p>
          ) : (
            <ul class="items">
              {accounts.map(account => (
                <AccountRow key={account.id} provider={provider} account={account} maintains={maintains} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  )
}

/** Finishes a sign-in that a program began: its address names it. */
const BegunSignIn = ({ provider, handshake }: { provider: ProviderRow; handshake: string }) => {
  const { id, label } = provider
  const list = useQuery(`accounts/${id}`, ['accounts'], () => askDaemon('GET /accounts/{provider}', { provider: id }))
  return (
    <Loaded query={list}>
      {({ signIns }) => {
        const found = signIns.find(each => each.handshake === handshake)
        if (found?.page === undefined || found.state !== 'waiting')
          return <p role="status">{`This sign-in at ${visibleName(label)} is over, or finishes by itself.`}</p>
        const { page: url, flow, expiresAt } = found
        const finish = flow === 'key' ? 'key' : flow === 'code' ? 'code' : 'redirect-url'
        const begun: SignInStart = { url, handshake, expiresAt, flow, finish }
        return <SignInForm key={handshake} provider={provider} begun={begun} close={() => goTo('accounts')} />
      }}
    </Loaded>
  )
}

/** The accounts of providers of models, and how to sign in to more. */
export const AccountsPage = ({ rest: [named, handshake] }: PageProps) => {
  const maintains = reaches(person.value?.role, 'maintainer')
  const list = useQuery('providers', ['providers', 'accounts', 'endpoints', 'capabilities'], () =>
    askDaemon('GET /providers'),
  )
  return (
    <PageFrame title="Accounts">
      <Loaded query={list}>
        {({ providers }) => (
          <>
            {maintains
              && handshake !== undefined
              && providers
                .filter(({ id }) => id === named)
                .map(provider => <BegunSignIn key={provider.id} provider={provider} handshake={handshake} />)}
            {providers
              .filter(({ flows, serving }) => flows.length > 0 && serving !== 'routed')
              .sort((a, b) => Number(b.accounts > 0) - Number(a.accounts > 0))
              .map(provider => (
                <ProviderAccounts key={provider.id} provider={provider} maintains={maintains} />
              ))}
            {providers.some(({ serving }) => serving === 'routed') && (
              <RoutedSection
                providers={providers.filter(({ serving }) => serving === 'routed')}
                maintains={maintains}
              />
            )}
          </>
        )}
      </Loaded>
    </PageFrame>
  )
}
