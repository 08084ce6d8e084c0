import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { SignInStart } from '../../../../accounts/contract.js'
import type { ProviderRow, SignInFlow } from '../../../../providers/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { DialogForm } from '../../ui/dialog.js'
import { ChoiceField, TextField } from '../../ui/fields.js'
import { momentOf, visibleName } from '../../ui/format.js'
import { useQuery } from '../../ui/query.js'
import { ignored } from '../../../../../sdk/ignored.js'
import { ProviderPage } from './provider-page.js'

const FLOWS: { readonly [flow in SignInFlow]: string } = {
  redirect: 'In the browser',
  code: 'With a code that its page shows',
  device: 'On another device',
  key: 'With a key',
}

interface SignInFormProps {
  readonly provider: ProviderRow
  /** Sign in to this account again. */
  readonly account?: string
  /** A sign-in that was begun elsewhere. */
  readonly begun?: SignInStart | undefined
  readonly close: () => void
}

/** Signs in at a provider: first the way, then what the page of the provider gives. */
export const SignInForm = ({
  provider: { id: provider, label, flows, client },
  account,
  begun,
  close,
}: SignInFormProps) => {
  const flow = useSignal<SignInFlow>(flows[0] ?? 'key')
  const name = useSignal('')
  const clientId = useSignal('')
  const started = useSignal<SignInStart | undefined>(begun)
  const given = useSignal('')
  const finished = useRef(false)
  const list = useQuery(`accounts/${provider}`, ['accounts'], () => askDaemon('GET /accounts/{provider}', { provider }))
  const start = started.value
  const attempt = list.data?.signIns.find(({ handshake }) => handshake === start?.handshake)
  const done = () => {
    refetch(new Set(['accounts', 'providers']))
    close()
  }
  useEffect(() => {
    if (attempt?.state !== 'done') return
    finished.current = true
    done()
  }, [attempt?.state])
  const leave = () => {
    if (start && !finished.current)
      askDaemon('POST /accounts/{provider}/login/cancel', { provider, handshake: start.handshake }).catch(
        ignored('what is over by now needs no end'),
      )
    close()
  }
  const begin = async () => {
    given.value = ''
    const own = client && flow.value !== 'key' && { clientId: clientId.value.trim() }
    const asked = { ...(account !== undefined && { account }), ...(name.value && { label: name.value }), ...own }
    started.value = await askDaemon('POST /accounts/{provider}/login/start', { provider, flow: flow.value, ...asked })
    return 'stays'
  }
  const finish = async ({ handshake, flow: way }: SignInStart) => {
    const text = given.value.trim()
    const field = way === 'key' ? { key: text } : /^https?:/.test(text) ? { redirectUrl: text } : { code: text }
    await askDaemon('POST /accounts/{provider}/login/finish', { provider, handshake, ...field })
    finished.current = true
    refetch(new Set(['accounts', 'providers']))
    return undefined
  }
  if (!start)
    return (
      <DialogForm title={`Sign in at ${visibleName(label)}`} close={close} verb="Continue" work={begin}>
        {flows.length > 1 && (
          <ChoiceField label="How" value={flow} choices={flows.map(one => [one, FLOWS[one]] as const)} />
        )}
        {client && flow.value !== 'key' && (
          <TextField
            key="client"
            label="Client id"
            required
            value={clientId}
            maxLength={200}
            hint={`Of a client of your own, registered there with the address ${visibleName(client.redirectUri)}.`}
          />
        )}
        {account === undefined && (
          <TextField key="name" label="Name" value={name} maxLength={80} hint="To tell accounts apart." />
        )}
      </DialogForm>
    )
  const over = attempt && ['failed', 'expired', 'abandoned'].includes(attempt.state)
  return (
    <DialogForm
      title={`Sign in at ${visibleName(label)}`}
      close={leave}
      verb={over ? 'Start again' : 'Finish'}
      ready={over || (start.flow !== 'device' && given.value.trim() !== '')}
      work={() => (over ? begin() : finish(start))}
    >
      <ProviderPage url={start.url} code={start.code} {...(start.flow === 'key' && { label: 'Make a key' })} />
      {start.flow === 'key' && <TextField key="key" label="Key" type="password" required value={given} />}
      {start.flow === 'code' && (
        <TextField key="code" label="Code" required value={given} hint="As the page shows it." />
      )}
      {start.flow === 'redirect' && (
        <TextField
          key="address"
          label="Address"
          value={given}
          hint="Needed only where the page cannot be shown at the end: paste its address."
        />
      )}
      <p class="quiet" role="status">
        {over
          ? `The sign-in is over: ${visibleName(attempt.detail ?? attempt.state)}.`
          : start.finish === 'none'
            ? `Waiting until you have signed in, until ${momentOf(start.expiresAt)} …`
            : attempt?.detail
              ? visibleName(attempt.detail)
              : `Finish it until ${momentOf(start.expiresAt)}.`}
      </p>
    </DialogForm>
  )
}
