import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { RoutedStart } from '../../../../routed/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { DialogForm } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { momentOf, visibleName } from '../../ui/format.js'
import { useQuery } from '../../ui/query.js'
import { ProviderPage } from './provider-page.js'

interface RoutedSignInProps {
  readonly provider: string
  readonly label: string
  readonly close: () => void
}

/** Reads the accounts again after one was connected or disconnected. */
export const routedChanged = (): void => refetch(new Set(['routed', 'accounts', 'providers']))

/** Signs in at a routed provider: its page, then the address that the browser ended at, where that did not load. */
export const RoutedSignIn = ({ provider, label, close }: RoutedSignInProps) => {
  const started = useSignal<RoutedStart | undefined>(undefined)
  const redirectUrl = useSignal('')
  const start = started.value
  const accounts = useQuery('translator/accounts', ['routed', 'accounts'], () => askDaemon('GET /translator/accounts'))
  const names = accounts.data?.[provider]?.map(({ name }) => name).join(' ')
  const before = useRef<string | undefined>(undefined)
  // A sign-in that completes by itself closes the dialog.
  useEffect(() => {
    if (start && before.current !== undefined && names !== before.current) close()
  }, [names, start])
  const begin = async () => {
    before.current = names
    started.value = await askDaemon('POST /translator/{provider}/connect', { provider })
    return 'stays'
  }
  const finish = async ({ state, flow }: RoutedStart) => {
    const address = redirectUrl.value.trim()
    if (flow === 'redirect' && address !== '')
      await askDaemon('POST /translator/{provider}/complete', { provider, redirectUrl: address, state })
    routedChanged()
    return undefined
  }
  if (!start)
    return (
      <DialogForm title={`Connect ${visibleName(label)}`} close={close} verb="Continue" work={begin}>
        <p>You sign in on the page of the provider. A further account adds room to those that are connected.</p>
      </DialogForm>
    )
  return (
    <DialogForm title={`Connect ${visibleName(label)}`} close={close} verb="Finish" work={() => finish(start)}>
      <ProviderPage url={start.url} code={start.code} />
      {start.flow === 'redirect' && (
        <TextField
          label="Address"
          value={redirectUrl}
          maxLength={8192}
          hint="Needed only where the page cannot be shown at the end: paste its address."
        />
      )}
      <p class="quiet" role="status">
        The account appears here once you have signed in, until {momentOf(start.expiresAt)}.
      </p>
    </DialogForm>
  )
}
