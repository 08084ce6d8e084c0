import type { AutomationDetail, AutomationRow, ChatSite } from '../../../../automations/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { Copyable } from '../../ui/copy.js'
import { FormButton } from '../../ui/dialog.js'
import { agoOf, countText, visibleName } from '../../ui/format.js'
import { FaultLine, Item, Loaded, PageFrame, type ToneWord } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { definitionOf } from '../automations/definition.js'
import { HeldWakeSection } from '../automations/held-wakes.js'
import { reaches, type PageProps } from '../registry.js'
import { ChatForm } from './chat-form.js'
import { ChatPreview } from './chat-preview.js'
import { isChat, type ChatAutomation } from './chats.js'

const DOMAINS = ['automations', 'extensions', 'personas']

const stateOf = ({ problem, enabled, running }: AutomationRow): ToneWord => {
  if (problem !== undefined) return ['warn', 'Cannot answer']
  if (!enabled) return ['', 'Off']
  return running ? ['busy', 'Answering'] : ['good', 'On']
}

const timesText = (count: number): string => (count === 1 ? 'once' : `${countText(count)} times`)

const sitesText = ({ trigger: { allowedOrigins = [] } }: ChatAutomation): string =>
  allowedOrigins.length === 0 ? 'on no site yet' : allowedOrigins.map(visibleName).join(', ')

/** The line that a site adds to its pages. */
const tagOf = (id: string): string =>
  `<script src="${location.origin}/webchat/widget.js" data-automation="${id}" async></script>`

const SiteRow = ({ site, chat }: { site: ChatSite; chat: ChatAutomation<AutomationDetail> }) => {
  const { origin, allowed, lastSeenAt, loads, refused } = site
  const action = useAction()
  const { trigger, problem } = chat
  // Saving accepts what an edit of the file brought: its form shows that first.
  const admits = !allowed && problem === undefined && reaches(person.value?.role, 'maintainer')
  return (
    <Item
      title={visibleName(origin)}
      state={allowed ? ['good', 'On the list'] : ['warn', 'Not on the list']}
      detail={
        <>
          <div>
            loaded {timesText(loads)}, refused {timesText(refused)}, last seen {agoOf(lastSeenAt)}
          </div>
          <FaultLine fault={action.fault} />
        </>
      }
    >
      {admits && (
        <ActionButton
          action={action}
          about={origin}
          work={async () => {
            const allowedOrigins = [...(trigger.allowedOrigins ?? []), origin]
            await askDaemon('POST /automations', { ...definitionOf(chat), trigger: { ...trigger, allowedOrigins } })
            refetch(new Set(['automations']))
          }}
        >
          Admit
        </ActionButton>
      )}
    </Item>
  )
}

/** What visitors were answered in, newest first. */
const Conversations = ({ runs }: Pick<AutomationRow, 'runs'>) => {
  const found = new Map<string, { at: number; answers: number }>()
  for (const { conversationId, at } of runs) {
    if (conversationId === undefined) continue
    const known = found.get(conversationId)
    found.set(conversationId, { at: known?.at ?? at, answers: (known?.answers ?? 0) + 1 })
  }
  if (found.size === 0) return <p class="quiet">No visitor has written yet.</p>
  return (
    <ul class="items">
      {[...found].map(([id, { at, answers }]) => (
        <Item
          key={id}
          title={<a href={fragmentOf('c', id)}>{visibleName(id)}</a>}
          detail={`${answers === 1 ? '1 message' : `${countText(answers)} messages`}, the last ${agoOf(at)}`}
        />
      ))}
    </ul>
  )
}

const ChatDetail = ({ chat }: { chat: ChatAutomation<AutomationDetail> }) => {
  const { id, installs = [], problem, runs } = chat
  const maintains = reaches(person.value?.role, 'maintainer')
  return (
    <>
      <ul class="items">
        <Item
          title="Now"
          state={stateOf(chat)}
          detail={
            <>
              <div dir="auto">{sitesText(chat)}</div>
              {problem !== undefined && <div dir="auto">{visibleName(problem)}</div>}
            </>
          }
        >
          {maintains && (
            <FormButton
              label="Edit"
              about={id}
              form={close => <ChatForm close={close} given={{ ...definitionOf(chat), trigger: chat.trigger }} />}
            />
          )}
          <a class="button" href={fragmentOf('automations', id)}>
            History
          </a>
        </Item>
      </ul>
      <section aria-labelledby="tag-heading">
        <h2 id="tag-heading">Put it on a site</h2>
        <p class="quiet">Add this line to the pages of a site that is on the list.</p>
        <Copyable text={tagOf(id)} what="the script tag">
          <code>{tagOf(id)}</code>
        </Copyable>
      </section>
      <section aria-labelledby="preview-heading">
        <h2 id="preview-heading">Preview</h2>
        <ChatPreview {...(chat.webchat && { webchat: chat.webchat })} />
      </section>
      <section aria-labelledby="sites-heading">
        <h2 id="sites-heading">Sites that loaded it</h2>
        {installs.length === 0 ? (
          <p class="quiet">No page has loaded it yet.</p>
        ) : (
          <ul class="items">
            {installs.map(site => (
              <SiteRow key={site.origin} site={site} chat={chat} />
            ))}
          </ul>
        )}
      </section>
      <section aria-labelledby="conversations-heading">
        <h2 id="conversations-heading">Conversations</h2>
        <Conversations runs={runs} />
      </section>
    </>
  )
}

const Detail = ({ id }: { id: string }) => {
  const found = useQuery(`automation ${id}`, DOMAINS, () => askDaemon('GET /automations/{id}', { id, limit: 200 }))
  return (
    <PageFrame
      title={visibleName(id)}
      tools={
        <a class="button" href={fragmentOf('webchat')}>
          All chats
        </a>
      }
    >
      <Loaded query={found}>
        {row => (isChat(row) ? <ChatDetail chat={row} /> : <p>{visibleName(id)} is no chat of web pages.</p>)}
      </Loaded>
    </PageFrame>
  )
}

const List = () => {
  const list = useQuery('automations', DOMAINS, () => askDaemon('GET /automations'))
  const maintains = reaches(person.value?.role, 'maintainer')
  return (
    <PageFrame title="Web chat">
      <HeldWakeSection />
      <section aria-labelledby="chats-heading">
        <div class="section-head">
          <h2 id="chats-heading">Chats of web pages</h2>
          {maintains && <FormButton label="Add a chat" primary form={close => <ChatForm close={close} />} />}
        </div>
        <Loaded query={list}>
          {({ automations }) => {
            const chats = automations.filter(isChat)
            if (chats.length === 0)
              return <p class="quiet">A chat lets visitors of your web pages ask an agent, which answers as you say.</p>
            return (
              <ul class="items">
                {chats.map(chat => (
                  <Item
                    key={chat.id}
                    title={<a href={fragmentOf('webchat', chat.id)}>{visibleName(chat.id)}</a>}
                    state={stateOf(chat)}
                    detail={<div dir="auto">{sitesText(chat)}</div>}
                    facts={chat.runs[0] && <span class="quiet small">{agoOf(chat.runs[0].at)}</span>}
                  />
                ))}
              </ul>
            )
          }}
        </Loaded>
      </section>
    </PageFrame>
  )
}

/** The chats of web pages: how each looks, who loads it, and what visitors asked. */
export const WebchatPage = ({ rest }: PageProps) =>
  rest[0] === undefined ? <List /> : <Detail key={rest[0]} id={rest[0]} />
