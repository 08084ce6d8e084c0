import { useSignal, type Signal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { askDaemon, askUntilAnswered } from '../../data/api.js'
import { draftOf, keepDraft } from '../../data/drafts.js'
import { served } from '../../data/live.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { UnansweredMessage } from '../../data/unanswered.js'
import type { Persona } from '../../../../personas/contract.js'
import type { Choice } from '../../../../providers/contract.js'
import type { PermissionMode } from '../../../../agent/contract.js'
import { useAction } from '../../ui/action.js'
import { CheckField, ChoiceField, TextField } from '../../ui/fields.js'
import { Icon } from '../../ui/icons.js'
import { useQuery } from '../../ui/query.js'
import type { PageProps } from '../registry.js'
import { FaultLine } from '../../ui/page.js'

const MODES: readonly (readonly [PermissionMode | '', string])[] = [
  ['', 'As usual'],
  ['bypassPermissions', 'Acts without asking'],
  ['acceptEdits', 'Asks before commands'],
  ['default', 'Asks before changes and commands'],
  ['plan', 'Plans first'],
]

const newConversation = (): string =>
  `c-${[...crypto.getRandomValues(new Uint32Array(2))].map(one => one.toString(36)).join('')}`

/** What a turn can run on, by provider; what is not ready is shown with the reason. */
const modelChoices = async (): Promise<readonly Choice[]> =>
  served.value.has('providers.choices') ? (await askDaemon('GET /providers/models', { limit: 500 })).choices : []

const personaChoices = async (): Promise<readonly Persona[]> =>
  served.value.has('personas.list') ? (await askDaemon('GET /personas')).personas : []

const valueOf = ({ provider, model }: Choice): string => JSON.stringify([provider, model.id])

const ModelField = ({ choices, value }: { choices: readonly Choice[]; value: Signal<string> }) => (
  <label class="field">
    Model
    <select
      value={value.value}
      onChange={event => {
        value.value = event.currentTarget.value
      }}
    >
      <option value="">The default one</option>
      {[...Map.groupBy(choices, ({ providerLabel }) => providerLabel)].map(([label, list]) => (
        <optgroup key={label} label={label}>
          {list.map(choice => (
            <option key={valueOf(choice)} value={valueOf(choice)} disabled={!choice.ready}>
              {choice.model.label}
              {!choice.ready && ` (${choice.reason ?? 'not ready'})`}
            </option>
          ))}
        </optgroup>
      ))}
    </select>
  </label>
)

/** The form that starts a conversation, or forks one at a message: `#/new`, `#/new/ID/KEEP`. */
export const NewPage = ({ rest }: PageProps) => {
  const [from, keep] = rest
  const draft = from ? `new ${from}` : 'new'
  const prompt = useSignal(draftOf(draft))
  const title = useSignal('')
  const isolated = useSignal(true)
  const mode = useSignal<PermissionMode | ''>('')
  const startIn = useSignal('')
  const model = useSignal('')
  const persona = useSignal('')
  const files = useSignal<'then' | 'now'>('now')
  const action = useAction()
  const { data: choices } = useQuery('choices', ['providers', 'endpoints', 'capabilities'], modelChoices)
  const { data: personas } = useQuery('persona choices', ['personas'], personaChoices)
  // Both are kept until an answer comes, so that sending the same text again starts nothing twice.
  const conversation = useRef(newConversation())
  const unanswered = useRef(new UnansweredMessage())
  const start = async () => {
    const [agent, chosen] = model.value ? (JSON.parse(model.value) as [string, string]) : []
    const conversationId = conversation.current
    const started = await action.run(() =>
      askUntilAnswered('POST /agent', {
        conversationId,
        messageId: unanswered.current.idFor(prompt.value),
        prompt: prompt.value,
        isolated: isolated.value,
        ...(title.value.trim() && { title: title.value.trim() }),
        ...(mode.value && { permissionMode: mode.value }),
        ...(startIn.value.trim() && { startIn: startIn.value.trim() }),
        ...(agent && { agent, ...(chosen && { model: chosen }) }),
        ...(persona.value && { actsAs: persona.value }),
        ...(from && { forkOf: { conversationId: from, keep: Number(keep), files: files.value } }),
      }),
    )
    if (!started) return
    keepDraft(draft, '')
    goTo('c', conversationId)
  }
  return (
    <>
      <header class="page-head">
        <a class="button plainly back" href={from ? fragmentOf('c', from) : fragmentOf('fleet')} aria-label="Back">
          <Icon name="back" />
        </a>
        <h1>{from ? 'Fork the conversation' : 'New conversation'}</h1>
      </header>
      <main class="page-body">
        <form
          class="stack new-form"
          onSubmit={event => {
            event.preventDefault()
            void start()
          }}
        >
          <label class="field">
            What should the agent do?
            <textarea
              required
              rows={8}
              dir="auto"
              value={prompt.value}
              onInput={event => {
                prompt.value = event.currentTarget.value
                keepDraft(draft, prompt.value)
              }}
              onKeyDown={event => {
                if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !event.isComposing)
                  event.currentTarget.form?.requestSubmit()
              }}
            />
          </label>
          <CheckField
            label="Work in a private copy: nothing changes in the workspace until the work is landed"
            value={isolated}
          />
          {from && (
            <ChoiceField
              label="Files"
              value={files}
              choices={[
                ['now', 'As they are now'],
                ['then', 'As they were at that message'],
              ]}
            />
          )}
          <details>
            <summary>More</summary>
            <div class="stack more-fields">
              <TextField label="Title" value={title} maxLength={80} />
              {choices && choices.length > 1 && <ModelField choices={choices} value={model} />}
              {personas && personas.length > 0 && (
                <ChoiceField
                  label="Persona"
                  value={persona}
                  choices={[['', 'None'], ...personas.map(({ id, label = id }) => [id, label] as const)]}
                />
              )}
              <ChoiceField label="Permissions" value={mode} choices={MODES} />
              <TextField label="Start folder" value={startIn} maxLength={200} placeholder="The root of the workspace" />
            </div>
          </details>
          <div class="row">
            <button class="button primary" disabled={action.busy || !prompt.value.trim()}>
              Start
            </button>
          </div>
          <FaultLine fault={action.fault} />
        </form>
      </main>
    </>
  )
}
