import { askDaemon } from '../../data/api.js'
import { AskButton } from '../../ui/dialog.js'
import { agoOf, momentOf, visibleName } from '../../ui/format.js'
import { Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { accessChanged } from './roles.js'

const VIA = { oidc: 'an identity provider', local: 'this machine', invitation: 'an invitation' } as const

/** Browsers and programs in which people are signed in. */
export const SignInsTab = ({ owner }: { owner: boolean }) => {
  const sessions = useQuery('sessions', ['sessions'], () => askDaemon('GET /system/sessions'))
  return (
    <section aria-labelledby="sign-ins-heading">
      <div class="section-head">
        <h2 id="sign-ins-heading">{owner ? 'Everybody’s sign-ins' : 'Your sign-ins'}</h2>
        {owner && (
          <AskButton
            label="End all"
            about="sign-ins"
            title="End every sign-in?"
            work={() => askDaemon('POST /system/sessions/revoke', {})}
          >
            <p>Everybody has to sign in again, you too. Turns that run go on.</p>
          </AskButton>
        )}
      </div>
      <Loaded query={sessions}>
        {({ sessions: all }) => (
          <ul class="items">
            {all.map(({ id, email, name, device, via, lastSeenAt, createdAt, address, current }) => {
              const what = `${visibleName(device ?? 'unnamed')} of ${visibleName(name ?? email)}`
              return (
                <Item
                  key={id}
                  title={
                    <>
                      {visibleName(device ?? 'Unnamed device')}
                      {current && <span class="tag good">This one</span>}
                    </>
                  }
                  detail={
                    <>
                      {visibleName(email)} · signed in {momentOf(createdAt)} by {VIA[via] ?? via}
                      {address && ` from ${visibleName(address)}`} · last used {agoOf(lastSeenAt)}
                    </>
                  }
                >
                  {!current && (
                    <AskButton
                      label="End"
                      about={`the sign-in ${what}`}
                      title="End this sign-in?"
                      work={async () => {
                        await askDaemon('POST /system/sessions/revoke', { id })
                        accessChanged()
                      }}
                    >
                      <p>{what} has to sign in again.</p>
                    </AskButton>
                  )}
                </Item>
              )
            })}
          </ul>
        )}
      </Loaded>
    </section>
  )
}
