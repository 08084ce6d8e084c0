import type { Signal } from '@preact/signals'
import { signal, useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type {
  InventoryEntry,
  InventoryKind,
  InventoryList,
  InventoryOption,
  InventoryValues,
  InventoryListed,
} from '../../../../inventory/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { DialogForm } from '../../ui/dialog.js'
import { ChoiceField, TextField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'

interface EntryFormProps {
  readonly kinds: readonly InventoryKind[]
  readonly list: InventoryList
  readonly close: () => void
  /** The entry to change; without one it is new. */
  readonly entry?: InventoryListed
}

const idOf = (entry: InventoryEntry): string | undefined =>
  entry.kind === 'backend' ? entry.provider : entry.kind === 'service' ? entry.service : undefined

const OptionField = ({ option, value }: { option: InventoryOption; value: Signal<string> }) => {
  const { label, description, required, type, values = [], default: usual } = option
  const hint = description ?? (usual === undefined ? undefined : `Left out: ${usual}.`)
  if (type === 'enum') {
    const choices = values.map(each => [each, each] as const)
    const all = required ? choices : [['', usual === undefined ? 'Not chosen' : `Usual: ${usual}`] as const, ...choices]
    return <ChoiceField label={label} value={value} choices={all} {...(hint && { hint })} />
  }
  return (
    <TextField
      label={label}
      value={value}
      required={required}
      type={type === 'number' ? 'number' : 'text'}
      {...(hint && { hint })}
    />
  )
}

/** The fields of what may be declared, and what they say now. */
const useOptions = (kinds: readonly InventoryKind[], given: InventoryValues) => {
  const fields = useMemo(
    () =>
      new Map(
        kinds.map(kind => [
          kind,
          kind.options
            .filter(({ secret }) => !secret)
            .map(option => ({ option, value: signal(String(given[option.key] ?? '')) })),
        ]),
      ),
    [],
  )
  return (kind: InventoryKind) => {
    const own = fields.get(kind) ?? []
    const read = (): InventoryValues =>
      Object.fromEntries(
        own.flatMap(({ option: { key, type }, value: { value } }) =>
          value.trim() === '' ? [] : [[key, type === 'number' ? Number(value) : value.trim()]],
        ),
      )
    const shown = own.map(({ option, value }) => <OptionField key={option.key} option={option} value={value} />)
    return { read, shown }
  }
}

/** Adds an entry of the deployment configuration, or changes one. */
export const EntryForm = ({ kinds, list, close, entry }: EntryFormProps) => {
  const wordOf = (kind: InventoryKind): string => `${kind.kind} ${kind.id ?? ''}`
  const known = entry && kinds.find(kind => kind.kind === entry.kind && kind.id === idOf(entry))
  const word = useSignal(wordOf(known ?? kinds[0]!))
  const name = useSignal(entry?.name ?? '')
  const kind = kinds.find(each => wordOf(each) === word.value) ?? kinds[0]!
  const machines = list.entries.filter(each => each.kind === 'backend' && each.provider === 'host')
  const on = useSignal(entry && entry.kind !== 'backend' ? entry.on : (machines[0]?.name ?? ''))
  const exposed = useSignal(entry && entry.kind !== 'backend' && entry.expose !== '' ? 'yes' : 'no')
  const { read, shown } = useOptions(kinds, entry?.values ?? {})(kind)
  const entryNow = (): InventoryEntry => {
    const own = { name: name.value.trim(), values: read() }
    if (kind.kind === 'backend') return { kind: 'backend', provider: kind.id ?? '', ...own }
    const place = { on: on.value, expose: exposed.value === 'yes' ? on.value : '' }
    return kind.kind === 'service'
      ? { kind: 'service', service: kind.id ?? '', ...own, ...place }
      : { kind: 'app', ...own, ...place }
  }
  const save = async () => {
    await askDaemon('POST /inventory', entryNow())
    refetch(new Set(['inventory']))
  }
  return (
    <DialogForm
      title={entry ? `Change ${visibleName(entry.name)}` : 'Add an entry'}
      close={close}
      verb="Save"
      ready={name.value.trim() !== '' && (kind.kind === 'backend' || on.value !== '')}
      work={save}
    >
      {!entry && (
        <>
          <ChoiceField
            label="What it is"
            value={word}
            choices={kinds.map(each => [wordOf(each), each.label] as const)}
          />
          <TextField
            label="Name"
            required
            value={name}
            maxLength={60}
            pattern="[a-zA-Z_][a-zA-Z0-9_]*"
            hint="Letters, digits and _."
          />
        </>
      )}
      <p class="quiet">{kind.description}</p>
      {shown}
      {kind.kind !== 'backend' && (
        <>
          <ChoiceField
            label="Machine"
            value={on}
            choices={
              machines.length > 0
                ? machines.map(each => [each.name, each.name] as const)
                : [['', 'Add a machine first'] as const]
            }
          />
          <ChoiceField
            label="Reachable from other machines"
            value={exposed}
            choices={[
              ['no', 'No'],
              ['yes', 'Yes'],
            ]}
          />
        </>
      )}
    </DialogForm>
  )
}
