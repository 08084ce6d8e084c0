import { useSignal } from '@preact/signals'
import type { CiHook, CiRepo, ForgeHost } from '../../../../pipelines/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { AskButton } from '../../ui/dialog.js'
import { agoOf, visibleName, visibleText } from '../../ui/format.js'
import { FaultLine, Item, Loaded, type ToneWord } from '../../ui/page.js'
import { Pairs } from '../../ui/pairs.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'
import { HOST_NAMES } from './run-words.js'

const DELIVERIES: { readonly [delivery in CiRepo['delivery']]: string } = {
  hook: 'the forge reports results',
  poll: 'the forge is asked every 2 minutes',
  none: 'nothing is asked yet',
}

const toneOf = ({ error, hookWarning, host }: CiRepo): ToneWord => {
  if (host === 'local') return ['', 'Local']
  if (error !== undefined) return ['bad', 'Cannot be asked']
  return hookWarning === undefined ? ['good', 'Connected'] : ['warn', 'Asked by turns']
}

const RepositoryRow = ({ row }: { row: CiRepo }) => {
  const { repo, host, project, url, account, delivery, polledAt, hookWarning, error } = row
  return (
    <Item
      title={visibleName(repo === 'root' ? 'The workspace' : repo)}
      state={toneOf(row)}
      detail={
        <div class="stack">
          <div dir="auto">
            {HOST_NAMES[host]}
            {host !== 'local' && (
              <>
                {', '}
                <a href={url} target="_blank" rel="noreferrer">
                  {visibleName(project)}
                </a>
                {account !== undefined && `, connection ${visibleName(account)}`}, {DELIVERIES[delivery]}
                {polledAt !== undefined && `, last ${agoOf(polledAt)}`}
              </>
            )}
          </div>
          {hookWarning !== undefined && <div dir="auto">{visibleText(hookWarning)}</div>}
          {error !== undefined && <div dir="auto">{visibleText(error)}</div>}
        </div>
      }
    />
  )
}

const HookRow = ({ host }: { host: ForgeHost }) => {
  const hook = useSignal<CiHook | undefined>(undefined)
  const action = useAction()
  const name = HOST_NAMES[host]
  return (
    <Item
      title={`Webhook of ${name}`}
      detail={
        <div class="stack">
          {hook.value && (
            <Pairs
              mono
              rows={[
                ['Address', hook.value.url],
                ['Secret', hook.value.secret],
              ]}
            />
          )}
          <FaultLine fault={action.fault} />
        </div>
      }
    >
      <ActionButton
        action={action}
        about={`the webhook of ${name}`}
        work={async () => {
          hook.value = await askDaemon('GET /ci/webhook/{host}', { host })
        }}
      >
        Show
      </ActionButton>
      <AskButton
        label="New secret"
        about={`for ${name}`}
        title={`A new secret for the webhook of ${name}?`}
        work={async () => {
          hook.value = await askDaemon('POST /ci/webhook/{host}/rotate', { host })
          refetch(new Set(['ci']))
        }}
      >
        <p>
          The old one stops at once. Webhooks that this sandbox registered get the new one; enter it in the others by
          hand.
        </p>
      </AskButton>
    </Item>
  )
}

const isForge = (host: CiRepo['host']): host is ForgeHost => host !== 'local'

/** The repositories whose runs are known, and for maintainers the webhooks of their forges. */
export const RepositoriesTab = () => {
  const list = useQuery('pipelines repositories', ['ci', 'repos', 'capabilities'], () =>
    askDaemon('GET /ci/runs', { limit: 1 }),
  )
  return (
    <Loaded query={list}>
      {({ repos }) => (
        <>
          {repos.length > 0 ? (
            <ul class="items" aria-label="Repositories">
              {repos.map(row => (
                <RepositoryRow key={`${row.repo} ${row.host}`} row={row} />
              ))}
            </ul>
          ) : (
            <p class="empty quiet">
              No repository has its remote at a connected forge. Connect GitHub, GitLab, Forgejo or Gitea on the page
              Connections.
            </p>
          )}
          {reaches(person.value?.role, 'maintainer') && (
            <ul class="items" aria-label="Webhooks">
              {[...new Set(repos.map(({ host }) => host).filter(isForge))].map(host => (
                <HookRow key={host} host={host} />
              ))}
            </ul>
          )}
        </>
      )}
    </Loaded>
  )
}
