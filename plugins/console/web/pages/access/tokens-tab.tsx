import { useSignal } from '@preact/signals'
import type { Scope } from '../../../../../sdk/types.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { AskButton, DialogForm, DoneDialog, FormButton } from '../../ui/dialog.js'
import { ChoiceField, OnceValue, TextField } from '../../ui/fields.js'
import { agoOf, momentOf, visibleName } from '../../ui/format.js'
import { Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'

const SCOPES = [
  ['read', 'Read conversations and files'],
  ['drive', 'Read, start conversations and answer agents'],
  ['land', 'All of that, and land work'],
  ['editor', 'Only what an editor needs'],
] as const satisfies readonly (readonly [Scope, string])[]
const LASTS = [
  ['30', '30 days'],
  ['90', '90 days'],
  ['365', 'A year'],
  ['', 'Until it is revoked'],
] as const

const MintForm = ({ close }: { close: () => void }) => {
  const label = useSignal('')
  const scope = useSignal<Scope>('read')
  const days = useSignal<(typeof LASTS)[number][0]>('90')
  const token = useSignal('')
  if (token.value)
    return (
      <DoneDialog title="The token is made" close={close}>
        <p>Copy it now: it is shown only once. Programs send it in the header x-sandbox-control.</p>
        <OnceValue label="Token" value={token.value} />
      </DoneDialog>
    )
  const work = async () => {
    const made = await askDaemon('POST /system/control/tokens', {
      label: label.value,
      scope: scope.value,
      ...(days.value && { expiresAt: Date.now() + Number(days.value) * 86_400_000 }),
    })
    refetch(new Set(['sessions']))
    token.value = made.token
    return 'stays'
  }
  return (
    <DialogForm title="Make a control token" close={close} verb="Make" work={work}>
      <TextField label="Name" required value={label} hint="The program that will use it; shown wherever it acts." />
      <ChoiceField label="It may" value={scope} choices={SCOPES} />
      <ChoiceField label="Good for" value={days} choices={LASTS} />
    </DialogForm>
  )
}

/** Credentials of programs; their values are shown once. */
export const TokensTab = () => {
  const tokens = useQuery('tokens', ['sessions'], () => askDaemon('GET /system/control/tokens'))
  return (
    <section aria-labelledby="tokens-heading">
      <div class="section-head">
        <h2 id="tokens-heading">Control tokens</h2>
        <FormButton label="Make a token" primary form={close => <MintForm close={close} />} />
      </div>
      <Loaded query={tokens}>
        {({ tokens: all }) =>
          all.length === 0 ? (
            <p class="quiet">Tokens with which programs use this sandbox appear here, never with their values.</p>
          ) : (
            <ul class="items">
              {all.map(({ id, label, scope, createdBy, createdAt, expiresAt, lastUsedAt, lastUsedFrom }) => {
                const ended = expiresAt !== undefined && expiresAt < Date.now()
                return (
                  <Item
                    key={id}
                    title={
                      <>
                        {visibleName(label)} <span class="tag">{scope}</span>
                        {ended && <span class="tag bad">Expired</span>}
                      </>
                    }
                    detail={
                      <>
                        made {momentOf(createdAt)} by {visibleName(createdBy)} ·{' '}
                        {expiresAt === undefined ? 'does not expire' : `good until ${momentOf(expiresAt)}`} ·{' '}
                        {lastUsedAt
                          ? `last used ${agoOf(lastUsedAt)}${lastUsedFrom ? ` from ${visibleName(lastUsedFrom)}` : ''}`
                          : 'never used'}
                      </>
                    }
                  >
                    <AskButton
                      label="Revoke"
                      about={`the token ${visibleName(label)}`}
                      title={`Revoke the token ${visibleName(label)}?`}
                      work={async () => {
                        await askDaemon('DELETE /system/control/tokens/{id}', { id })
                        refetch(new Set(['sessions']))
                      }}
                    >
                      <p>The program that uses it is refused at once. A turn that it started goes on.</p>
                    </AskButton>
                  </Item>
                )
              })}
            </ul>
          )
        }
      </Loaded>
    </section>
  )
}
