import type { PortEntry } from '../../../../ports/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { AddressLink } from '../../ui/address-link.js'
import { AskButton } from '../../ui/dialog.js'
import { visibleName, visibleText } from '../../ui/format.js'
import { FaultLine, Item, Loaded, PageFrame } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'
import { Copyable } from '../../ui/copy.js'

const changed = (): void => refetch(new Set(['ports']))

const placeOf = ({ port, conversationId }: PortEntry) => ({
  port,
  ...(conversationId !== undefined && { conversationId }),
})

const EndButton = ({ entry }: { entry: PortEntry }) => {
  const action = useAction()
  const end = async () => {
    await askDaemon('POST /ports/unforward', placeOf(entry))
    changed()
  }
  return (
    <>
      <ActionButton action={action} work={end} about={`the forward of port ${entry.port}`}>
        End
      </ActionButton>
      <FaultLine fault={action.fault} />
    </>
  )
}

const ForwardButton = ({ entry }: { entry: PortEntry }) => (
  <AskButton
    label="Forward"
    about={`port ${entry.port}`}
    title={`Forward port ${entry.port}?`}
    work={async () => {
      await askDaemon('POST /ports/forward', placeOf(entry))
      changed()
    }}
  >
    <p>
      {visibleName(entry.title)} gets an address. Everybody who knows the address and reaches this machine can use the
      server, without signing in.
    </p>
  </AskButton>
)

const PortRow = ({ entry }: { entry: PortEntry }) => {
  const { port, title, purpose, command, conversationId, session, origin, forwarded, forwardable, previewUrl } = entry
  const inTerminal = session !== undefined && (origin === 'terminal' || origin === 'panel')
  return (
    <Item
      title={`${port} · ${visibleName(title)}`}
      state={forwarded ? ['good', 'Forwarded'] : ['', 'Not forwarded']}
      detail={
        <>
          <div>{visibleText(purpose)}</div>
          {command && (
            <div>
              <Copyable text={command} what="the command">
                {visibleText(command)}
              </Copyable>
            </div>
          )}
          {conversationId !== undefined && (
            <div>
              In the network of <a href={fragmentOf('c', conversationId)}>{visibleName(conversationId)}</a>
            </div>
          )}
          {inTerminal && reaches(person.value?.role, 'maintainer') && (
            <div>
              <a href={fragmentOf('terminals', session)}>The terminal {visibleName(session)}</a>
            </div>
          )}
          {previewUrl !== undefined && (
            <div>
              <AddressLink address={previewUrl} label={previewUrl} />
            </div>
          )}
          {!forwardable && <div>Cannot be forwarded: it does not listen on loopback.</div>}
        </>
      }
    >
      {reaches(person.value?.role, 'maintainer') && forwarded && <EndButton entry={entry} />}
      {reaches(person.value?.role, 'maintainer') && !forwarded && forwardable && <ForwardButton entry={entry} />}
    </Item>
  )
}

const PortsSection = ({ heading, ports }: { heading: string; ports: readonly PortEntry[] }) =>
  ports.length === 0 ? null : (
    <section aria-label={heading}>
      <h2>{heading}</h2>
      <ul class="items">
        {ports.map(entry => (
          <PortRow key={`${entry.port} ${entry.conversationId ?? ''}`} entry={entry} />
        ))}
      </ul>
    </section>
  )

/** The ports on which something listens, and the addresses of those that are forwarded. */
export const PortsPage = () => {
  const list = useQuery('ports', ['ports'], () => askDaemon('GET /ports'))
  return (
    <PageFrame title="Ports">
      <Loaded query={list}>
        {({ ports }) => (
          <>
            {ports.length === 0 && (
              <p class="quiet">Servers that agents, terminals and apps start on this machine appear here.</p>
            )}
            <PortsSection heading="Workspace" ports={ports.filter(({ kind }) => kind === 'workspace')} />
            <PortsSection heading="Machine" ports={ports.filter(({ kind }) => kind === 'system')} />
          </>
        )}
      </Loaded>
    </PageFrame>
  )
}
