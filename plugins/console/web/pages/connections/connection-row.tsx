import { useSignal } from '@preact/signals'
import type { CapabilitySummary, CatalogCard, OAuthLogin, OneTimeCode } from '../../../../capabilities/contract.js'
import { askDaemon } from '../../data/api.js'
import { goTo } from '../../data/route.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { AskButton, DialogForm, DoneDialog, FormButton } from '../../ui/dialog.js'
import { ChoiceField, OnceValue, TextField } from '../../ui/fields.js'
import { countText, visibleName } from '../../ui/format.js'
import { FaultLine, Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { ConnectForm, connectionsChanged } from './connect-form.js'

const STATES = {
  active: ['good', 'Active'],
  pending: ['busy', 'Pending'],
  error: ['bad', 'Error'],
  inactive: ['', 'Inactive'],
} as const
const KINDS: { readonly [kind: string]: string } = {
  mcp: 'tools of a server',
  cli: 'a credential for programs',
  ssh: 'a server over SSH',
  agent: 'an agent program',
  disk: 'a network disk',
  plugin: 'a plugin of agents',
  extension: 'an extension',
  browser: 'an account at a site',
  identity: 'an identity',
  wallet: 'a wallet',
}
/** The secret field with the seed of one-time codes. */
const SEED = 'otp'

const RenameForm = ({ id, close }: { id: string; close: () => void }) => {
  const to = useSignal(id)
  const rename = async () => {
    if (to.value !== id) await askDaemon('POST /capabilities/{id}/rename', { id, to: to.value })
    connectionsChanged()
  }
  return (
    <DialogForm title={`Give ${visibleName(id)} another id`} close={close} verb="Rename" work={rename}>
      <TextField label="Id" required value={to} hint="Personas and agents name it so from then on." />
    </DialogForm>
  )
}

const SecretForm = ({ connection, close }: { connection: CapabilitySummary; close: () => void }) => {
  const { id, label, secrets } = connection
  const field = useSignal(secrets[0]!)
  const value = useSignal('')
  const replace = async () => {
    await askDaemon('POST /capabilities/{id}/secret', { id, field: field.value, value: value.value })
    connectionsChanged()
  }
  return (
    <DialogForm title={`Replace a secret of ${visibleName(label)}`} close={close} verb="Replace" work={replace}>
      {secrets.length > 1 && (
        <ChoiceField label="Which" value={field} choices={secrets.map(name => [name, name] as const)} />
      )}
      <TextField
        label="New value"
        type="password"
        required
        value={value}
        hint="It is kept only if the connection works with it."
      />
    </DialogForm>
  )
}

/** A sign-in that was started: the person goes on at the server, and comes back or brings the code here. */
const SignInForm = ({ id, login, close }: { id: string; login: OAuthLogin; close: () => void }) => {
  const back = useSignal('')
  const { handshake, url } = login
  const finish = async () => {
    const given = back.value.trim()
    await askDaemon('POST /capabilities/{id}/login/finish', {
      ...{ id, handshake },
      ...(/^https?:/.test(given) ? { redirectUrl: given } : { code: given }),
    })
    connectionsChanged()
  }
  return (
    <DialogForm title={`Sign in to ${visibleName(id)}`} close={close} verb="Finish" work={finish}>
      <p>
        <a class="button primary" href={url} target="_blank" rel="noopener noreferrer">
          Open the sign-in page
        </a>
      </p>
      <p>When the page says that you are signed in, this connection is ready and you can close this.</p>
      <TextField
        label="Address or code"
        required
        value={back}
        hint="Only where the browser cannot come back by itself: the address that it was sent to, or the code in it."
      />
    </DialogForm>
  )
}

const SignInButton = ({ id, shown }: { id: string; shown: string }) => {
  const login = useSignal<OAuthLogin | undefined>(undefined)
  const action = useAction()
  const start = async () => {
    const started = await askDaemon('POST /capabilities/{id}/login', { id })
    if (started.kind === 'browser') goTo('browsers', started.session)
    else login.value = started
  }
  const close = () => {
    login.value = undefined
    connectionsChanged()
  }
  return (
    <>
      <ActionButton action={action} class="primary" work={start}>
        Sign in<span class="visually-hidden"> to {shown}</span>
      </ActionButton>
      <FaultLine fault={action.fault} />
      {login.value && <SignInForm id={id} login={login.value} close={close} />}
    </>
  )
}

const CodeButton = ({ id, shown }: { id: string; shown: string }) => {
  const found = useSignal<OneTimeCode | undefined>(undefined)
  const action = useAction()
  const ask = async () => {
    found.value = await askDaemon('GET /capabilities/{id}/otp', { id })
  }
  const close = () => {
    found.value = undefined
  }
  return (
    <>
      <ActionButton action={action} work={ask}>
        Show a code<span class="visually-hidden"> of {shown}</span>
      </ActionButton>
      <FaultLine fault={action.fault} />
      {found.value && (
        <DoneDialog title={`A one-time code of ${shown}`} close={close}>
          <OnceValue label="Code" value={found.value.code} />
          <p class="quiet">It was good for {found.value.secondsRemaining} s when it was made.</p>
        </DoneDialog>
      )}
    </>
  )
}

/** The tools of a connection, each with why agents are not offered it. */
const ToolsDialog = ({ id, shown, close }: { id: string; shown: string; close: () => void }) => {
  const list = useQuery(`tools of ${id}`, ['capabilities'], () => askDaemon('GET /capabilities/{id}/tools', { id }))
  return (
    <DoneDialog title={`Tools of ${shown}`} close={close}>
      <Loaded query={list}>
        {({ tools }) =>
          tools.length === 0 ? (
            <p class="quiet">It offers no tools.</p>
          ) : (
            <ul class="items">
              {tools.map(({ name, title, description, offered, withheld, approve }) => (
                <Item
                  key={name}
                  title={visibleName(title ?? name)}
                  state={offered ? (approve ? ['warn', 'Asks first'] : ['good', 'Offered']) : ['', 'Withheld']}
                  detail={
                    <>
                      <span class="mono">{visibleName(name)}</span> {visibleName(description)}
                      {withheld && <div>{visibleName(withheld)}</div>}
                    </>
                  }
                />
              ))}
            </ul>
          )
        }
      </Loaded>
    </DoneDialog>
  )
}

/** A connection with everything that can be done to it. */
export const ConnectionRow = ({ connection, card }: { connection: CapabilitySummary; card?: CatalogCard }) => {
  const { id, label, kind, status, secrets, tools, usedBy } = connection
  const action = useAction()
  const shown = visibleName(label)
  const check = async () => {
    await askDaemon('GET /capabilities/{id}/status', { id })
    connectionsChanged()
  }
  return (
    <Item
      title={shown}
      state={STATES[status.state] ?? ['', status.state]}
      detail={
        <>
          <span class="mono">{visibleName(id)}</span> · {KINDS[kind] ?? kind}
          {tools !== undefined && ` · ${countText(tools)} ${tools === 1 ? 'tool' : 'tools'}`}
          {secrets.length > 0 && ` · holds ${secrets.join(', ')}`}
          {usedBy.length > 0 && ` · used by ${visibleName(usedBy.join(', '))}`}
          {status.detail && <div>{visibleName(status.detail)}</div>}
          <FaultLine fault={action.fault} />
        </>
      }
    >
      {(status.code === 'sign-in' || kind === 'browser') && <SignInButton id={id} shown={shown} />}
      {secrets.includes(SEED) && <CodeButton id={id} shown={shown} />}
      {(kind === 'mcp' || kind === 'plugin') && (
        <FormButton label="Tools" about={shown} form={close => <ToolsDialog id={id} shown={shown} close={close} />} />
      )}
      <ActionButton action={action} work={check} about={shown}>
        Check
      </ActionButton>
      {card && (
        <FormButton
          label="Change"
          about={shown}
          form={close => <ConnectForm card={card} connection={connection} close={close} />}
        />
      )}
      {secrets.length > 0 && (
        <FormButton
          label="Replace a secret"
          about={`of ${shown}`}
          form={close => <SecretForm connection={connection} close={close} />}
        />
      )}
      <FormButton label="Rename" about={shown} form={close => <RenameForm id={id} close={close} />} />
      <AskButton
        label="Disconnect"
        about={shown}
        title={`Disconnect ${shown}?`}
        work={async () => {
          await askDaemon('DELETE /capabilities/{id}', { id })
          connectionsChanged()
        }}
      >
        <p>Its programs end, and its secrets and files are removed.</p>
      </AskButton>
    </Item>
  )
}
