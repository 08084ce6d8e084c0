import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { ShieldList, ShieldPattern } from '../../../../shield/contract.js'
import { AskButton, DialogForm, FormButton } from '../../ui/dialog.js'
import { CheckField, ChoiceField, TextField } from '../../ui/fields.js'
import { countText, visibleName } from '../../ui/format.js'
import { Item } from '../../ui/page.js'
import { ACTION_CHOICES, enteredLines, savePrivacy, type PrivacyProps } from './privacy-policy.js'

type FormProps = Pick<PrivacyProps, 'state'> & { readonly close: () => void }

/** Adds a list, or changes one in its place. */
const ListForm = ({ state: { policy, revision }, list, close }: FormProps & { readonly list?: ShieldList }) => {
  const opened = useRef(revision)
  const id = useSignal(list?.id ?? '')
  const label = useSignal(list?.label ?? '')
  const kind = useSignal(list?.kind ?? '')
  const values = useSignal(list?.values.join('\n') ?? '')
  const wholeWord = useSignal(list?.wholeWord ?? true)
  const caseSensitive = useSignal(list?.caseSensitive ?? false)
  const save = () => {
    const written: ShieldList = {
      ...{
        id: id.value.trim(),
        label: label.value.trim(),
        kind: kind.value.trim(),
        values: enteredLines(values.value),
      },
      ...{ wholeWord: wholeWord.value, caseSensitive: caseSensitive.value },
    }
    const lists = list ? policy.lists.map(each => (each.id === list.id ? written : each)) : [...policy.lists, written]
    return savePrivacy({ ...policy, lists }, list ? opened.current : revision)
  }
  return (
    <DialogForm
      title={list ? 'Change the list' : 'Add a list'}
      verb={list ? 'Change' : 'Add'}
      close={close}
      work={save}
    >
      {!list && <TextField label="Id" required value={id} placeholder="clients" />}
      <TextField label="Label" required value={label} maxLength={60} />
      <TextField label="Word in tokens" required value={kind} placeholder="CLIENT" />
      <TextField label="Values, one a line" required value={values} rows={6} />
      <CheckField label="Whole words alone" value={wholeWord} />
      <CheckField label="Large and small letters differ" value={caseSensitive} />
    </DialogForm>
  )
}

const PatternForm = ({ state: { policy, revision }, close }: FormProps) => {
  const id = useSignal('')
  const label = useSignal('')
  const kind = useSignal('')
  const regex = useSignal('')
  const action = useSignal<ShieldPattern['action']>('mask')
  const save = () => {
    const written: ShieldPattern = {
      ...{ id: id.value.trim(), label: label.value.trim(), kind: kind.value.trim() },
      ...{ regex: regex.value, action: action.value },
    }
    return savePrivacy({ ...policy, patterns: [...policy.patterns, written] }, revision)
  }
  return (
    <DialogForm title="Add a pattern" verb="Add" close={close} work={save}>
      <TextField label="Id" required value={id} placeholder="contracts" />
      <TextField label="Label" required value={label} maxLength={60} />
      <TextField label="Word in tokens" required value={kind} placeholder="CONTRACT" />
      <TextField label="Text that fits (RE2)" required value={regex} />
      <ChoiceField label="What happens" value={action} choices={ACTION_CHOICES} />
    </DialogForm>
  )
}

/** The owner's lists and patterns. */
export const WordsSection = ({ state }: Pick<PrivacyProps, 'state'>) => {
  const { policy, revision } = state
  const { lists, patterns } = policy
  const empty = lists.length + patterns.length === 0
  return (
    <section aria-labelledby="lists-heading">
      <div class="row apart">
        <h2 id="lists-heading">Lists and patterns</h2>
        <div class="row">
          <FormButton label="Add a list" form={close => <ListForm state={state} close={close} />} />
          <FormButton label="Add a pattern" form={close => <PatternForm state={state} close={close} />} />
        </div>
      </div>
      {empty && <p class="quiet">There is no list and no pattern.</p>}
      <ul class="items">
        {lists.map(list => {
          const label = visibleName(list.label)
          return (
            <Item
              key={`list ${list.id}`}
              title={label}
              detail={`${list.kind}, ${countText(list.values.length)} ${list.values.length === 1 ? 'value' : 'values'}`}
            >
              <FormButton
                label="Change"
                about={label}
                form={close => <ListForm state={state} list={list} close={close} />}
              />
              <AskButton
                label="Remove"
                about={label}
                title={`Remove the list ${label}?`}
                work={() => savePrivacy({ ...policy, lists: lists.filter(({ id }) => id !== list.id) }, revision)}
              >
                <p>Its values then leave as they are.</p>
              </AskButton>
            </Item>
          )
        })}
        {patterns.map(({ id, label, kind, regex }) => (
          <Item
            key={`pattern ${id}`}
            title={visibleName(label)}
            detail={<code>{`${kind}: ${visibleName(regex)}`}</code>}
          >
            <AskButton
              label="Remove"
              about={visibleName(label)}
              title={`Remove the pattern ${visibleName(label)}?`}
              work={() => savePrivacy({ ...policy, patterns: patterns.filter(each => each.id !== id) }, revision)}
            >
              <p>What fits it then leaves as it is.</p>
            </AskButton>
          </Item>
        ))}
      </ul>
    </section>
  )
}
