import type { SharedConversation } from '../../../../share/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { AddressLink } from '../../ui/address-link.js'
import { AskButton, DialogForm, FormButton } from '../../ui/dialog.js'
import { agoOf, countText, momentOf, sizeTextOf, visibleName } from '../../ui/format.js'
import { Item, Loaded, PageFrame, type ToneWord } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { useRead } from '../../ui/read.js'
import { reaches, type PageProps } from '../registry.js'
import { PreviewFrame } from './preview-frame.js'
import { PreviewNotes, redactionsText, ShareForm } from './share-form.js'

const MOST_TITLE = 80
const changed = () => refetch(new Set(['share']))

const stateOf = ({ expiresAt = Infinity, stale, url }: SharedConversation): ToneWord => {
  if (url === undefined) return ['', 'Switched off']
  if (expiresAt <= Date.now()) return ['warn', 'Expired']
  return stale ? ['warn', 'Older than the conversation'] : ['good', 'Public']
}

/** Shows the page as it would be now, and takes exactly that one. */
const UpdateForm = ({ share, close }: { share: SharedConversation; close: () => void }) => {
  const { id, conversationId, detail, title } = share
  const asked = { conversationId, detail, title: title.slice(0, MOST_TITLE) }
  const preview = useRead(id, () => askDaemon('POST /share/preview', asked))
  return (
    <DialogForm
      title={`Take the page of ${visibleName(title)} again?`}
      verb="Update"
      close={close}
      ready={preview.data !== undefined}
      work={async () => {
        await askDaemon('POST /share/update', { id, expect: preview.data!.digest })
        changed()
      }}
    >
      <Loaded query={preview}>
        {page => (
          <>
            <PreviewNotes preview={page} />
            <PreviewFrame html={page.html} label="The page as it will be" />
          </>
        )}
      </Loaded>
    </DialogForm>
  )
}

const ShareActions = ({ share }: { share: SharedConversation }) => {
  const { id, title } = share
  return (
    <>
      <FormButton
        label="Update"
        about={visibleName(title)}
        form={close => <UpdateForm share={share} close={close} />}
      />
      <AskButton
        label="Take down"
        about={visibleName(title)}
        title={`Take ${visibleName(title)} down?`}
        work={async () => {
          await askDaemon('POST /share/remove', { id })
          changed()
        }}
      >
        <p>Its address answers nobody from then on. The conversation stays.</p>
      </AskButton>
    </>
  )
}

const ShareRow = ({ share }: { share: SharedConversation }) => {
  const { title, url, detail, messages, pictures, sizeBytes, sharedBy, sharedAt, expiresAt, opened } = share
  return (
    <Item
      title={visibleName(title)}
      state={stateOf(share)}
      detail={
        <>
          {url !== undefined && (
            <div>
              <AddressLink address={url} label={url} />
            </div>
          )}
          <div>
            <a href={fragmentOf('c', share.conversationId)}>{visibleName(share.conversationId)}</a>,{' '}
            {detail === 'messages' ? 'what was said' : 'with everything'}: {countText(messages)} messages,{' '}
            {countText(pictures)} pictures, {sizeTextOf(sizeBytes)}
          </div>
          <div>
            by {visibleName(sharedBy)} {agoOf(sharedAt)}
            {expiresAt !== undefined && `, until ${momentOf(expiresAt)}`}, opened {countText(opened)} times
          </div>
          <div>{redactionsText(share.redactions)}</div>
        </>
      }
    >
      {reaches(person.value?.role, 'maintainer') && <ShareActions share={share} />}
    </Item>
  )
}

/** The shared conversations; with the id of one, its pages, and a form for another. */
export const SharePage = ({ rest: [conversationId] }: PageProps) => {
  const query = useQuery(`share ${conversationId ?? ''}`, ['share'], () =>
    askDaemon('GET /share', conversationId === undefined ? {} : { conversationId }),
  )
  const role = person.value?.role
  return (
    <PageFrame title={conversationId === undefined ? 'Shared pages' : 'Share a conversation'}>
      {conversationId !== undefined && (
        <p>
          <a href={fragmentOf('c', conversationId)}>{visibleName(conversationId)}</a>{' '}
          <a href={fragmentOf('share')}>All shared pages</a>
        </p>
      )}
      <Loaded query={query}>
        {({ shares }) =>
          shares.length === 0 ? (
            <p class="quiet">
              {conversationId === undefined
                ? 'A conversation is shared from its page. Everybody who knows the address of its page can read it.'
                : 'It has no page yet. Everybody who knows the address of a page can read it, without signing in.'}
            </p>
          ) : (
            <section aria-label="Pages">
              <ul class="items">
                {shares.map(share => (
                  <ShareRow key={share.id} share={share} />
                ))}
              </ul>
            </section>
          )
        }
      </Loaded>
      {conversationId !== undefined && reaches(role, 'collaborator') && (
        <ShareForm key={conversationId} conversationId={conversationId} shares={reaches(role, 'maintainer')} />
      )}
    </PageFrame>
  )
}
