import { useSignal } from '@preact/signals'
import type { EndpointRow, EndpointStatus, EndpointTest, WireProtocol } from '../../../../endpoints/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { AskButton, DialogForm, FormButton } from '../../ui/dialog.js'
import { ChoiceField, TextField } from '../../ui/fields.js'
import { agoOf, countText, visibleName } from '../../ui/format.js'
import { FaultLine, Item, Loaded, type ToneWord } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'

/** The words for how a server stands. */
export const STATES: { readonly [status in EndpointStatus]: ToneWord } = {
  ready: ['good', 'Ready'],
  empty: ['warn', 'No models'],
  unreachable: ['bad', 'Does not answer'],
  refused: ['bad', 'Refused'],
  downloading: ['busy', 'Downloading'],
  loading: ['busy', 'Loading'],
  stopped: ['', 'Stopped'],
  unavailable: ['warn', 'Unavailable'],
  error: ['bad', 'Error'],
}
const PROTOCOLS = [
  ['openai', 'Chat completions (OpenAI)'],
  ['anthropic', 'Messages (Anthropic)'],
  ['ollama', 'Ollama'],
] as const satisfies readonly (readonly [WireProtocol, string])[]

/** Reads again what a change of a server shows in. */
export const changed = (): void => refetch(new Set(['endpoints', 'providers']))

const ServerForm = ({ close, server }: { close: () => void; server?: EndpointRow }) => {
  const id = useSignal(server?.id ?? '')
  const label = useSignal(server?.label ?? '')
  const protocol = useSignal<WireProtocol>(server?.protocol ?? 'openai')
  const baseUrl = useSignal(server?.baseUrl ?? '')
  const apiKey = useSignal('')
  return (
    <DialogForm
      title={server ? `Change ${visibleName(server.label)}` : 'Add a model server'}
      close={close}
      verb={server ? 'Change' : 'Add'}
      work={async () => {
        await askDaemon('POST /endpoints', {
          id: id.value,
          kind: 'server',
          protocol: protocol.value,
          baseUrl: baseUrl.value.trim(),
          ...(label.value && { label: label.value }),
          ...(apiKey.value && { apiKey: apiKey.value }),
        })
        changed()
      }}
    >
      {!server && (
        <TextField label="Id" required value={id} hint="Turns name it endpoint/<id>. Letters, digits, - and _." />
      )}
      <TextField label="Name" value={label} />
      <TextField label="Address" required value={baseUrl} placeholder="http://127.0.0.1:11434" />
      <ChoiceField label="Protocol" value={protocol} choices={PROTOCOLS} />
      <TextField
        label="Key"
        type="password"
        value={apiKey}
        hint={server?.hasKey ? 'Empty: the stored key stays.' : 'Kept with the secrets; never shown again.'}
      />
    </DialogForm>
  )
}

/** The result of testing a model server, as sentences. */
const TestResult = ({ test }: { test: EndpointTest }) => (
  <p class={`notice ${test.ok ? '' : 'bad'}`} role="status">
    {test.ok ? 'It works' : 'It does not work'}: {countText(test.models)} {test.models === 1 ? 'model' : 'models'}
    {test.model && `, asked ${visibleName(test.model)}`}
    {test.latencyMs !== undefined && `, first word after ${countText(Math.round(test.latencyMs))} ms`}
    {test.tools === 'ok' && ', takes tools'}
    {test.tools === 'unsupported' && ', takes no tools'}.{test.detail && ` ${visibleName(test.detail)}`}
    {test.suggestion?.baseUrl && ` ${visibleName(test.suggestion.baseUrl)} answered instead.`}
    {test.suggestion?.protocol && ` It speaks ${test.suggestion.protocol}.`}
  </p>
)

const ServerRow = ({ server, maintains }: { server: EndpointRow; maintains: boolean }) => {
  const { id, label, provider, kind, baseUrl, hasKey, status, detail, models, default: model, checkedAt } = server
  const found = useSignal<EndpointTest | undefined>(undefined)
  const action = useAction()
  const shown = visibleName(label)
  const test = async () => {
    found.value = undefined
    found.value = await askDaemon('POST /endpoints/{id}/test', { id })
    changed()
  }
  return (
    <Item
      title={shown}
      state={STATES[status] ?? ['', status]}
      detail={
        <>
          <div>
            <span class="mono">{visibleName(provider)}</span>
            {baseUrl && ` · ${visibleName(baseUrl)}`}
            {hasKey && ' · with a key'} · {countText(models)} {models === 1 ? 'model' : 'models'}
            {model && `, default ${visibleName(model)}`}
            {checkedAt !== undefined && ` · answered ${agoOf(checkedAt)}`}
          </div>
          {detail && <div>{visibleName(detail)}</div>}
          {action.busy && <div role="status">Testing, for at most 30 s …</div>}
          {found.value && <TestResult test={found.value} />}
          <FaultLine fault={action.fault} />
        </>
      }
    >
      {maintains && kind === 'server' && (
        <>
          <ActionButton action={action} work={test} about={shown}>
            Test
          </ActionButton>
          <FormButton label="Change" about={shown} form={close => <ServerForm close={close} server={server} />} />
          <AskButton
            label="Remove"
            about={shown}
            title={`Remove ${shown}?`}
            work={async () => {
              await askDaemon('DELETE /endpoints/{id}', { id })
              changed()
            }}
          >
            <p>Its key goes with it. Conversations on it need another model before their next turn.</p>
          </AskButton>
        </>
      )}
    </Item>
  )
}

/** Servers of models that people added. */
export const ServerSection = ({ maintains }: { maintains: boolean }) => {
  const list = useQuery('endpoints', ['endpoints'], () => askDaemon('GET /endpoints'))
  return (
    <section aria-labelledby="servers-heading">
      <div class="section-head">
        <h2 id="servers-heading">Model servers</h2>
        {maintains && <FormButton label="Add a server" form={close => <ServerForm close={close} />} />}
      </div>
      <Loaded query={list}>
        {({ endpoints }) =>
          endpoints.every(({ kind }) => kind === 'local') ? (
            <p class="quiet">Servers that speak a known protocol appear here, such as one on your own machine.</p>
          ) : (
            <ul class="items">
              {endpoints
                .filter(({ kind }) => kind !== 'local')
                .map(server => (
                  <ServerRow key={server.id} server={server} maintains={maintains} />
                ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  )
}
