import { useSignal } from '@preact/signals'
import type { Member } from '../../../../../sdk/kernel.js'
import type { Role } from '../../../../../sdk/types.js'
import type { Area } from '../../../../areas/contract.js'
import { askDaemon } from '../../data/api.js'
import { DialogForm, DoneDialog } from '../../ui/dialog.js'
import { ChoiceField, OnceValue, TextField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'
import { accessChanged, ROLE_SENTENCES } from './roles.js'

const ROLES = [
  ['viewer', 'Viewer'],
  ['collaborator', 'Collaborator'],
  ['maintainer', 'Maintainer'],
] as const satisfies readonly (readonly [Role, string])[]

interface GrantFormProps {
  readonly close: () => void
  readonly areas: readonly Area[]
  /** The person whose role changes; left out: a new person. */
  readonly member?: Member
  /** A new person is named, instead of invited by a link. */
  readonly by?: 'email'
}

/** Grants a role: to a member, to a person by e-mail, or by an invitation. */
export const GrantForm = ({ close, areas, member, by }: GrantFormProps) => {
  const email = useSignal(member?.email ?? '')
  const note = useSignal('')
  const days = useSignal('7')
  const role = useSignal<(typeof ROLES)[number][0]>(!member || member.role === 'owner' ? 'collaborator' : member.role)
  const limited = useSignal(member?.areas !== undefined)
  const chosen = useSignal<ReadonlySet<string>>(new Set(member?.areas))
  const link = useSignal('')
  const invites = !member && !by
  const mayLimit = role.value !== 'maintainer'
  const work = async () => {
    const answer = await askDaemon('POST /members', {
      role: role.value,
      ...(mayLimit && limited.value && { areas: [...chosen.value] }),
      ...(invites
        ? {
            ...(note.value && { note: note.value }),
            expiresAt: Date.now() + Number(days.value) * 86_400_000,
          }
        : { email: email.value.trim() }),
    })
    accessChanged()
    if (!answer.invitation) return undefined
    link.value = answer.invitation.url
    return 'stays'
  }
  if (link.value)
    return (
      <DoneDialog title="The invitation is made" close={close}>
        <p>Send this link to one person. It is shown only now, and works once.</p>
        <OnceValue label="Link" value={link.value} />
      </DoneDialog>
    )
  return (
    <DialogForm
      title={member ? `Change the role of ${visibleName(member.name ?? member.email)}` : by ? 'Add a person' : 'Invite'}
      close={close}
      verb={member ? 'Change' : by ? 'Add' : 'Make a link'}
      work={work}
    >
      {by && (
        <TextField label="E-mail" type="email" required value={email} hint="As their identity provider names them." />
      )}
      <ChoiceField label="Role" value={role} choices={ROLES} hint={ROLE_SENTENCES[role.value]} />
      {mayLimit && areas.length > 0 && (
        <fieldset class="stack plain-fieldset">
          <legend>Folders</legend>
          <label class="check">
            <input
              type="radio"
              name="reach"
              checked={!limited.value}
              onChange={() => {
                limited.value = false
              }}
            />
            The whole workspace
          </label>
          <label class="check">
            <input
              type="radio"
              name="reach"
              checked={limited.value}
              onChange={() => {
                limited.value = true
              }}
            />
            Only these areas
          </label>
          {limited.value
            && areas.map(({ id, label }) => (
              <label key={id} class="check inset">
                <input
                  type="checkbox"
                  checked={chosen.value.has(id)}
                  onChange={event => {
                    const next = new Set(chosen.value)
                    if (event.currentTarget.checked) next.add(id)
                    else next.delete(id)
                    chosen.value = next
                  }}
                />
                {visibleName(label)}
              </label>
            ))}
        </fieldset>
      )}
      {invites && (
        <>
          <TextField
            label="Note"
            value={note}
            hint="Tells invitations apart in the list; the person does not see it."
          />
          <ChoiceField
            label="Good for"
            value={days}
            choices={[
              ['1', 'A day'],
              ['7', 'A week'],
              ['30', '30 days'],
            ]}
          />
        </>
      )}
    </DialogForm>
  )
}
