import { useSignal } from '@preact/signals'
import type { SignInOptions, SignInProvider } from '../../../../system/contract.js'
import { authorizeUrl, type SignInCodes } from '../../data/session/oidc.js'
import { remembers } from '../../data/own-storage.js'
import { openSession } from '../../data/session/session.js'
import { useAction } from '../action.js'
import { TextField } from '../fields.js'
import { FaultLine } from '../page.js'
import { Copyable } from '../copy.js'

const Remember = () => (
  <label class="check">
    <input
      type="checkbox"
      checked={!remembers.value}
      onChange={event => {
        remembers.value = !event.currentTarget.checked
      }}
    />
    This is not my computer: forget me when I close the tab
  </label>
)

const AcceptForm = ({ invite }: { invite: string }) => {
  const name = useSignal('')
  const { busy, fault, run } = useAction()
  return (
    <form
      class="stack"
      onSubmit={event => {
        event.preventDefault()
        void run(() => openSession({ invite, name: name.value.trim() }))
      }}
    >
      <p role="status">You were invited to this sandbox.</p>
      <TextField
        label="Your name, as the others here see it"
        value={name}
        required
        maxLength={80}
        autocomplete="name"
      />
      <div class="row">
        <button class="button primary" disabled={busy}>
          Accept the invitation
        </button>
      </div>
      <FaultLine fault={fault} />
    </form>
  )
}

/** Redirects to a provider, which redirects back with a code in the fragment. */
const leaveFor = async (provider: SignInProvider, nonce: string, codes: SignInCodes): Promise<void> => {
  const returnTo = location.hash.startsWith('#/') ? location.hash : ''
  location.assign(await authorizeUrl(provider, nonce, { ...codes, returnTo, remember: remembers.value }))
}

const Providers = ({ options, codes }: { options: SignInOptions; codes: SignInCodes }) => {
  const { fault, run } = useAction()
  return (
    <div class="stack">
      {options.providers.map(provider => (
        <button
          key={provider.id}
          class="button"
          type="button"
          disabled={!provider.authorize}
          onClick={() => void run(() => leaveFor(provider, options.nonce, codes))}
        >
          Sign in with {provider.label}
          {!provider.authorize && ' (cannot be reached now)'}
        </button>
      ))}
      <FaultLine fault={fault} />
    </div>
  )
}

const Ways = ({ options, codes }: { options: SignInOptions; codes: SignInCodes }) => {
  const withProvider = options.providers.length > 0
  const claim = useSignal('')
  if (codes.invite && !withProvider) return <AcceptForm invite={codes.invite} />
  return (
    <>
      {codes.invite && <p role="status">You were invited to this sandbox. Sign in to accept the invitation.</p>}
      {withProvider && !options.claimed && (
        <TextField
          label="Claim code"
          value={claim}
          maxLength={80}
          autocomplete="one-time-code"
          hint="Nobody owns this sandbox yet. If the daemon printed a claim code, enter it before you sign in."
        />
      )}
      {withProvider && (
        <Providers options={options} codes={claim.value.trim() ? { ...codes, claim: claim.value.trim() } : codes} />
      )}
      {options.local && (
        <p>
          To sign in as the owner, run <Copyable text="sandbox login" what="the command" /> on the machine of the
          sandbox and open the link it prints.
        </p>
      )}
    </>
  )
}

/** The page of a person who is not signed in. */
export const SignInPage = ({
  message,
  codes,
  options,
}: {
  message?: string | undefined
  codes: SignInCodes
  options?: SignInOptions | undefined
}) => (
  <main class="front">
    <h1>Sandbox</h1>
    <p class="quiet">A daemon that runs coding agents beside your code, in private copies of your repositories.</p>
    <p role="status" class={message ? 'notice' : undefined}>
      {message ?? 'You are not signed in.'}
    </p>
    {options && <Ways options={options} codes={codes} />}
    {options && <Remember />}
    <p class="quiet small">
      <a href="/reference">All calls of this sandbox</a> · <a href="/openapi.json">openapi.json</a>
    </p>
  </main>
)
