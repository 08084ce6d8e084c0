import type { Signal } from '@preact/signals'
import { signal, useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { CapabilitySummary, CardField, CatalogCard } from '../../../../capabilities/contract.js'
import { conditionHolds } from '../../../../../sdk/conditions.js'
import { Refusal } from '../../../../../sdk/refusal.js'
import { VAULTED } from '../../../../../sdk/vaulted.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { DialogForm } from '../../ui/dialog.js'
import { ChoiceField, TextField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'
import { CardGuideView } from './card-looks.js'

/** Reads again what a change of a connection shows in. */
export const connectionsChanged = (): void => refetch(new Set(['capabilities', 'providers']))

const SWITCH = [
  { value: 'on', label: 'On' },
  { value: 'off', label: 'Off' },
]
/** The field of a connection that names its card; of other kinds only those of extensions have one. */
const NAMED_BY: { readonly [kind: string]: string } = { cli: 'provider', browser: 'platform' }

/** One field of a card. */
const CardFieldInput = ({ field, value, stored }: { field: CardField; value: Signal<string>; stored: boolean }) => {
  const { label, placeholder, secret = false, multiline = false, optional = false } = field
  const hint = stored ? 'Empty: the stored value stays.' : field.hint
  const options = field.options ?? (field.boolean ? SWITCH : undefined)
  if (options) {
    const choices = options.map(({ value, label }) => [value, label] as const)
    return <ChoiceField label={label} value={value} choices={optional ? [['', 'Not chosen'], ...choices] : choices} />
  }
  return (
    <TextField
      label={label}
      value={value}
      required={!optional && !stored}
      type={secret && !multiline ? 'password' : 'text'}
      {...(multiline && { rows: 4 })}
      {...(placeholder && { placeholder })}
      {...(hint && { hint })}
    />
  )
}

interface ConnectFormProps {
  readonly card: CatalogCard
  readonly close: () => void
  /** The connection to change; without one it is new. */
  readonly connection?: CapabilitySummary
  /** What the workspace says of the new one already. */
  readonly prefill?: { readonly [field: string]: string }
}

/** Connects what a card describes, or changes it; its steps show while it is tried. */
export const ConnectForm = ({ card, close, connection, prefill = {} }: ConnectFormProps) => {
  const id = useSignal<string>(connection?.id ?? (card.instances.length === 0 ? card.id : ''))
  const step = useSignal('')
  const known = connection?.config ?? prefill
  const values = useMemo(
    () =>
      card.fields.flatMap(field => {
        if (field.value !== undefined) return []
        const first = field.default ?? (field.optional ? '' : (field.options?.[0]?.value ?? ''))
        return [{ field, value: signal(String(known[field.key] ?? first)) }]
      }),
    [],
  )
  const asked = () => {
    const known = Object.fromEntries(values.map(({ field, value }) => [field.key, value.value]))
    return values.filter(({ field }) => conditionHolds(field.when, known))
  }
  const isStored = (key: string) => connection?.secrets.includes(key) ?? false
  const connect = async () => {
    // What the card has no field for stays as it is.
    const config: { [field: string]: string | number | boolean } = { ...connection?.config }
    const named = NAMED_BY[card.kind] ?? (card.extension === undefined ? undefined : 'card')
    if (named !== undefined) config[named] = card.id
    // What is not asked any more goes, such as a field of another protocol.
    for (const { field } of values) delete config[field.key]
    for (const { field, value } of asked()) {
      const { key, secret } = field
      if (value.value !== '') config[key] = key === 'port' ? Number(value.value) : value.value
      else if (secret && isStored(key)) config[key] = VAULTED
    }
    step.value = ''
    let connected = false
    // The daemon checks the settings of each kind, which only its card knows.
    const given = { id: id.value, kind: card.kind, config } as never
    for await (const frame of await askDaemon('POST /capabilities', given)) {
      if (frame.kind === 'log') step.value = frame.message
      if (frame.kind === 'result') connected = true
    }
    connectionsChanged()
    if (!connected) throw new Refusal('unavailable', step.value || 'it did not connect')
  }
  const name = visibleName(card.name)
  return (
    <DialogForm
      title={connection ? `Change ${visibleName(connection.label)}` : `Connect ${name}`}
      close={close}
      verb={connection ? 'Change' : 'Connect'}
      work={connect}
    >
      <p>{visibleName(card.description)}</p>
      {card.hint && <p class="quiet">{visibleName(card.hint)}</p>}
      {!connection && <TextField label="Id" required value={id} hint="Agents name it so. Letters, digits, - and _." />}
      {card.guide && (
        <CardGuideView
          guide={card.guide}
          valueOf={key => values.find(({ field }) => field.key === key)?.value.value ?? ''}
        />
      )}
      {asked().map(({ field, value }) => (
        <CardFieldInput key={field.key} field={field} value={value} stored={isStored(field.key)} />
      ))}
      {step.value && (
        <p class="quiet" role="status">
          {visibleName(step.value)}
        </p>
      )}
    </DialogForm>
  )
}
