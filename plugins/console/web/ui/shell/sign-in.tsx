import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { SignInOptions } from '../../../../system/contract.js'
import { faultSentence } from '../../data/api.js'
import type { SignInCodes } from '../../data/session/oidc.js'
import { leaveFor, openSession, remembers } from '../../data/session/session.js'
import { FaultLine } from '../page.js'

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

interface CodeFormProps {
  readonly label: string
  readonly action: string
  readonly autocomplete: string
  readonly children?: ComponentChildren
  readonly submit: (value: string) => Promise<void>
}

const CodeForm = ({ label, action, autocomplete, children, submit }: CodeFormProps) => {
  const value = useSignal('')
  const fault = useSignal('')
  const busy = useSignal(false)
  const send = async (event: Event) => {
    event.preventDefault()
    busy.value = true
    fault.value = ''
    await submit(value.value.trim()).catch(error => {
      fault.value = faultSentence(error)
    })
    busy.value = false
  }
  return (
    <form class="stack" onSubmit={event => void send(event)}>
      {children}
      <label class="field">
        {label}
        <input
          required
          maxLength={80}
          autocomplete={autocomplete}
          value={value.value}
          onInput={event => {
            value.value = event.currentTarget.value
          }}
        />
      </label>
      <div class="row">
        <button class="button primary" disabled={busy.value}>
          {action}
        </button>
      </div>
      <FaultLine fault={fault.value} />
    </form>
  )
}

const Providers = ({ options, codes }: { options: SignInOptions; codes: SignInCodes }) => {
  const fault = useSignal('')
  return (
    <div class="stack">
      {options.providers.map(provider => (
        <button
          key={provider.id}
          class="button"
          type="button"
          disabled={!provider.authorize}
          onClick={() =>
            void leaveFor(provider, options.nonce, codes).catch(error => {
              fault.value = faultSentence(error)
            })
          }
        >
          Sign in with {provider.label}
          {!provider.authorize && ' (cannot be reached now)'}
        </button>
      ))}
      <FaultLine fault={fault.value} />
    </div>
  )
}

const Ways = ({ options, codes }: { options: SignInOptions; codes: SignInCodes }) => {
  const withProvider = options.providers.length > 0
  const claim = useSignal('')
  if (codes.invite && !withProvider) {
    const { invite } = codes
    return (
      <CodeForm
        label="Your name, as the others here see it"
        action="Accept the invitation"
        autocomplete="name"
        submit={name => openSession({ invite, name })}
      >
        <p role="status">You were invited to this sandbox.</p>
      </CodeForm>
    )
  }
  return (
    <>
      {codes.invite && <p role="status">You were invited to this sandbox. Sign in to accept the invitation.</p>}
      {withProvider && !options.claimed && (
        <label class="field">
          Claim code
          <input
            maxLength={80}
            autocomplete="one-time-code"
            value={claim.value}
            onInput={event => {
              claim.value = event.currentTarget.value
            }}
          />
          <span class="quiet small">
            Nobody owns this sandbox yet. If the daemon printed a claim code at its start, enter it before you sign in.
          </span>
        </label>
      )}
      {withProvider && (
        <Providers options={options} codes={claim.value.trim() ? { ...codes, claim: claim.value.trim() } : codes} />
      )}
      {options.local && (
        <p>
          To sign in as the owner, run <code>sandbox login</code> on the machine of the sandbox and open the link it
          prints.
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
  <main class="plain">
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
