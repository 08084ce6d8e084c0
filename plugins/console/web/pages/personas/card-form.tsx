import { useSignal, type Signal } from '@preact/signals'
import type { Persona, PersonaCard, Powers, PromptMode } from '../../../../personas/contract.js'
import { askDaemon } from '../../data/api.js'
import { served } from '../../data/live.js'
import { refetch } from '../../data/queries.js'
import { DialogForm } from '../../ui/dialog.js'
import { CheckField, ChoiceField, TextField } from '../../ui/fields.js'

const SWITCHES = [
  ['shell', 'Run commands'],
  ['code', 'Run scripts'],
  ['web', 'Fetch pages and search the web'],
  ['browser', 'Use a browser without sign-ins'],
  ['delegate', 'Start subagents'],
  ['sandbox', 'Read the sandbox itself, and open tunnels and disks'],
] as const

/** Lists of ids whose absence means all of them. */
const LISTS = [
  ['connectors', 'Command-line tools'],
  ['devices', 'Computers'],
  ['mcp', 'Tool servers'],
  ['extensions', 'Extensions'],
] as const

const partsOf = (text: string): string[] =>
  text
    .split(/[\n,]/)
    .map(part => part.trim())
    .filter(Boolean)

/** `*` stands for all, nothing for none. */
const listText = (list: readonly string[] | undefined): string => (list ? list.join(', ') : '*')

const modelsOf = (text: string): NonNullable<PersonaCard['models']> =>
  partsOf(text).map(line => {
    const [provider = '', ...model] = line.split(/\s+/)
    return { provider, model: model.join(' ') || provider }
  })

/** Writes a card, whole; what the form does not show is kept. */
export const CardForm = ({ card, close }: { card?: Persona; close: () => void }) => {
  const { powers = {} } = card ?? {}
  const id = useSignal(card?.id ?? '')
  const label = useSignal(card?.label ?? '')
  const brief = useSignal(card?.brief ?? '')
  const accounts = useSignal(card?.capabilities.join(', ') ?? '')
  const files = useSignal<NonNullable<Powers['files']>>(powers.files ?? 'write')
  const switches: readonly (readonly [(typeof SWITCHES)[number][0], string, Signal<boolean>])[] = SWITCHES.map(
    ([power, words]) => [power, words, useSignal(powers[power] ?? true)],
  )
  const lists: readonly (readonly [(typeof LISTS)[number][0], string, Signal<string>])[] = LISTS.map(
    ([power, words]) => [power, words, useSignal(listText(powers[power]))],
  )
  const startIn = useSignal(card?.workspace?.startIn ?? '')
  const folders = useSignal(card?.workspace?.folders?.join('\n') ?? '')
  const models = useSignal(card?.models?.map(({ provider, model }) => `${provider} ${model}`).join('\n') ?? '')
  const mode = useSignal<PromptMode | ''>(card?.systemPromptMode ?? '')
  const given = (): PersonaCard => {
    const asked = partsOf(folders.value)
    const chosen = modelsOf(models.value)
    const known = card?.models ?? []
    return {
      ...(card?.context && { context: card.context }),
      ...(card?.briefing && { briefing: card.briefing }),
      id: id.value,
      capabilities: partsOf(accounts.value),
      ...(label.value && { label: label.value }),
      ...(brief.value && { brief: brief.value }),
      powers: {
        ...(files.value !== 'write' && { files: files.value }),
        ...Object.fromEntries(switches.flatMap(([power, , on]) => (on.value ? [] : [[power, false]]))),
        ...Object.fromEntries(
          lists.flatMap(([power, , text]) => (text.value.trim() === '*' ? [] : [[power, partsOf(text.value)]])),
        ),
      },
      ...((startIn.value || asked.length > 0) && {
        workspace: { ...(startIn.value && { startIn: startIn.value }), ...(asked.length > 0 && { folders: asked }) },
      }),
      ...(chosen.length > 0 && {
        models: chosen.map(
          one => known.find(({ provider, model }) => provider === one.provider && model === one.model) ?? one,
        ),
      }),
      ...(mode.value && { systemPromptMode: mode.value }),
    }
  }
  return (
    <DialogForm
      title={card ? `Edit ${card.id}` : 'Write a card'}
      verb="Save"
      close={close}
      ready={id.value !== ''}
      work={async () => {
        await askDaemon('POST /personas', given())
        refetch(new Set(['personas', 'skills']))
      }}
    >
      {!card && <TextField label="Id" value={id} required hint="Letters, digits, dashes and underscores." />}
      <TextField label="Name" value={label} />
      <TextField label="What it is for" value={brief} rows={2} />
      {served.value.has('capabilities.list') && (
        <TextField label="Accounts it speaks for" value={accounts} hint="Ids of connections, separated by commas." />
      )}
      <ChoiceField
        label="Files of the workspace"
        value={files}
        choices={[
          ['write', 'Reads and writes'],
          ['read', 'Reads'],
          ['none', 'None'],
        ]}
      />
      <fieldset class="plain-fieldset">
        <legend>It may</legend>
        {switches.map(([power, words, on]) => (
          <CheckField key={power} label={words} value={on} />
        ))}
      </fieldset>
      {lists.map(([power, words, text]) => (
        <TextField
          key={power}
          label={words}
          value={text}
          hint="Ids with commas between them; * is all, nothing is none."
        />
      ))}
      <TextField label="Starts in" value={startIn} hint="A folder of the workspace." />
      <TextField label="Folders it reaches" value={folders} rows={2} hint="One a line; none is the whole workspace." />
      <TextField label="Models" value={models} rows={2} hint="Provider and model, one a line, tried in order." />
      <ChoiceField
        label="Instructions"
        value={mode}
        choices={[
          ['', 'As the sandbox has it'],
          ['core', 'The sandbox’s'],
          ['vendor', 'The provider’s'],
          ['custom', 'The prompt of this card'],
        ]}
      />
    </DialogForm>
  )
}
