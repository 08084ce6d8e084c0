import { useSignal } from '@preact/signals'
import type { Invitation, Member } from '../../../../../sdk/kernel.js'
import type { Area } from '../../../../areas/contract.js'
import { askDaemon } from '../../data/api.js'
import { person } from '../../data/session/session.js'
import { AskButton, FormButton } from '../../ui/dialog.js'
import { agoOf, momentOf, visibleName } from '../../ui/format.js'
import { Item, Loaded } from '../../ui/page.js'
import { Pairs } from '../../ui/pairs.js'
import { useQuery } from '../../ui/query.js'
import { GrantForm } from './grant-form.js'
import { accessChanged, ROLE_SENTENCES } from './roles.js'

const areaWords = (areas: readonly string[] | undefined): string =>
  areas === undefined ? 'the whole workspace' : areas.length ? `only ${areas.join(', ')}` : 'no folder'

interface MemberRowProps {
  readonly member: Member
  readonly areas: readonly Area[]
  readonly owner: boolean
}

const MemberRow = ({ member, areas, owner }: MemberRowProps) => {
  const { email, name, role, lastSeenAt, bound } = member
  const shown = visibleName(name ?? email)
  return (
    <Item
      title={
        <>
          {shown}
          {email === person.value?.email && <span class="tag">You</span>}
        </>
      }
      detail={
        <>
          {name && `${visibleName(email)} · `}
          {role}, reaches {areaWords(member.areas)} ·{' '}
          {lastSeenAt ? <span title={momentOf(lastSeenAt)}>last seen {agoOf(lastSeenAt)}</span> : 'never signed in'}
        </>
      }
    >
      {owner && role !== 'owner' && (
        <>
          <FormButton
            label="Change"
            about={`the role of ${shown}`}
            form={close => <GrantForm close={close} areas={areas} member={member} />}
          />
          {bound && (
            <AskButton
              label="Make owner"
              about={`of this sandbox: ${shown}`}
              title={`Make ${shown} the owner?`}
              work={async () => {
                await askDaemon('POST /members', { email, role: 'owner' })
                accessChanged()
              }}
            >
              <p>They decide who has access from then on. You become a maintainer and cannot take it back.</p>
            </AskButton>
          )}
          <AskButton
            label="Remove"
            about={shown}
            title={`Remove ${shown}?`}
            work={async () => {
              await askDaemon('DELETE /members', { email })
              accessChanged()
            }}
          >
            <p>Their sign-ins end at once. Turns that they started go on, and their work stays.</p>
          </AskButton>
        </>
      )}
    </Item>
  )
}

const InvitationRow = ({ invitation, owner }: { invitation: Invitation; owner: boolean }) => {
  const { id, role, areas, note, createdBy, expiresAt } = invitation
  const shown = visibleName(note ?? `for a ${role}`)
  return (
    <Item
      title={shown}
      detail={
        <>
          {role}, would reach {areaWords(areas)} · by {visibleName(createdBy)} · good until {momentOf(expiresAt)}
        </>
      }
    >
      {owner && (
        <AskButton
          label="Withdraw"
          about={`the invitation ${shown}`}
          title="Withdraw the invitation?"
          work={async () => {
            await askDaemon('DELETE /members', { invitation: id })
            accessChanged()
          }}
        >
          <p>Its link stops working. You can make another one.</p>
        </AskButton>
      )}
    </Item>
  )
}

/** People with a role, and invitations that wait. */
export const PeopleTab = ({ owner }: { owner: boolean }) => {
  const members = useQuery('members', ['members'], () => askDaemon('GET /members'))
  const areas = useQuery('areas', ['areas', 'members'], () => askDaemon('GET /areas'))
  const known = areas.data?.areas ?? []
  const explained = useSignal(false)
  return (
    <>
      <section aria-labelledby="people-heading">
        <div class="section-head">
          <h2 id="people-heading">Members</h2>
          {owner && (
            <>
              <FormButton label="Add by e-mail" form={close => <GrantForm close={close} areas={known} by="email" />} />
              <FormButton label="Invite" primary form={close => <GrantForm close={close} areas={known} />} />
            </>
          )}
        </div>
        <Loaded query={members}>
          {({ members: all }) => (
            <ul class="items">
              {all.map(member => (
                <MemberRow key={member.email} member={member} areas={known} owner={owner} />
              ))}
            </ul>
          )}
        </Loaded>
        <details
          open={explained.value}
          onToggle={event => {
            explained.value = event.currentTarget.open
          }}
        >
          <summary>What each role may do</summary>
          <Pairs rows={Object.entries(ROLE_SENTENCES)} />
        </details>
      </section>
      <section aria-labelledby="invitations-heading">
        <h2 id="invitations-heading">Invitations</h2>
        {members.data
          && (members.data.invitations.length ? (
            <ul class="items">
              {members.data.invitations.map(invitation => (
                <InvitationRow key={invitation.id} invitation={invitation} owner={owner} />
              ))}
            </ul>
          ) : (
            <p class="quiet">Invitations that nobody has accepted yet appear here.</p>
          ))}
      </section>
    </>
  )
}
