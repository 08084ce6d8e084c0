import { useSignal } from '@preact/signals'
import type { VpnImported, VpnLink } from '../../../../vpn/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { DialogForm, DoneDialog, FormButton } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { momentOf, sizeTextOf, visibleName, visibleText } from '../../ui/format.js'
import { FaultLine, Item, Loaded, PageFrame } from '../../ui/page.js'
import { Pairs } from '../../ui/pairs.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'
import { TextBlock } from '../../ui/text-block.js'

const STATES = {
  connected: ['good', 'Connected'],
  connecting: ['busy', 'Connecting'],
  disconnected: ['', 'Disconnected'],
  unavailable: ['warn', 'Unavailable'],
  failed: ['bad', 'Failed'],
} as const
const PROVIDERS = { wireguard: 'WireGuard', openvpn: 'OpenVPN', fortinet: 'Fortinet', ipsec: 'IPsec' } as const

const tunnelsChanged = (): void => refetch(new Set(['vpn', 'capabilities']))

const DialForm = ({ id, close }: { id: string; close: () => void }) => {
  const otp = useSignal('')
  const step = useSignal('')
  const dial = async () => {
    const input = { id, ...(otp.value !== '' && { otp: otp.value }) }
    for await (const line of await askDaemon('POST /vpn/{id}/connect', input))
      if (line.kind === 'log') step.value = line.message
    tunnelsChanged()
  }
  return (
    <DialogForm title={`Dial ${visibleName(id)}`} close={close} verb="Dial" work={dial}>
      <p>The sandbox itself goes through the tunnel, as far as its routes say.</p>
      <TextField label="Code" value={otp} hint="Only where the gateway asks for one. It is not stored." />
      {step.value && (
        <p class="quiet" role="status">
          {visibleText(step.value)}
        </p>
      )}
    </DialogForm>
  )
}

const DropButton = ({ id }: { id: string }) => {
  const action = useAction()
  const drop = async () => {
    await askDaemon('POST /vpn/{id}/disconnect', { id })
    tunnelsChanged()
  }
  return (
    <>
      <ActionButton action={action} work={drop} about={visibleName(id)}>
        Disconnect
      </ActionButton>
      <FaultLine fault={action.fault} />
    </>
  )
}

/** Everything that is known of a tunnel, with the log of its last dial. */
const TunnelDialog = ({ id, close }: { id: string; close: () => void }) => {
  const detail = useQuery(`vpn ${id}`, ['vpn'], () => askDaemon('GET /vpn/{id}', { id }))
  return (
    <DoneDialog title={visibleName(id)} close={close}>
      <Loaded query={detail}>
        {({ fullTunnel, rxBytes, txBytes, handshakeAt, missing, log, logAt, interface: name, dns }) => (
          <>
            <Pairs
              rows={[
                ['Interface', name],
                ['Everything goes through it', fullTunnel ? 'yes' : 'no'],
                ['Received', rxBytes === undefined ? undefined : sizeTextOf(rxBytes)],
                ['Sent', txBytes === undefined ? undefined : sizeTextOf(txBytes)],
                ['Last exchange of keys', handshakeAt === undefined ? undefined : momentOf(handshakeAt)],
                ['Name servers', dns.join(', ') || undefined],
              ]}
            />
            {missing.length > 0 && (
              <>
                <h3>This machine lacks</h3>
                <ul class="items">
                  {missing.map(one => (
                    <Item key={one.name} title={visibleName(one.name)} detail={visibleName(one.install)} />
                  ))}
                </ul>
              </>
            )}
            <h3>The last dial{logAt !== undefined && `, ${momentOf(logAt)}`}</h3>
            {log === '' ? (
              <p class="quiet">It has not been dialled yet.</p>
            ) : (
              <TextBlock class="mono" label="The log of the last dial" what="the log" text={log} />
            )}
          </>
        )}
      </Loaded>
    </DoneDialog>
  )
}

const TunnelRow = ({ link }: { link: VpnLink }) => {
  const { id, provider, state, gateway, address, routes, since, autoConnect, detail } = link
  const isUp = state === 'connected' || state === 'connecting'
  return (
    <Item
      title={visibleName(id)}
      state={STATES[state]}
      detail={
        <>
          <div>
            {PROVIDERS[provider]}
            {gateway !== undefined && ` · ${visibleName(gateway)}`}
            {since !== undefined && ` · since ${momentOf(since)}`}
            {!autoConnect && ' · dialled by hand'}
          </div>
          {address !== undefined && <div class="mono">{visibleName(address)}</div>}
          {routes.length > 0 && <div class="mono">{visibleName(routes.join(', '))}</div>}
          {detail !== undefined && <div>{visibleName(detail)}</div>}
        </>
      }
    >
      {reaches(person.value?.role, 'maintainer') && (
        <>
          {isUp ? (
            <DropButton id={id} />
          ) : (
            <FormButton label="Dial" about={visibleName(id)} form={close => <DialForm id={id} close={close} />} />
          )}
          <FormButton
            label="Details"
            about={`of ${visibleName(id)}`}
            form={close => <TunnelDialog id={id} close={close} />}
          />
        </>
      )}
    </Item>
  )
}

const ImportForm = ({ close }: { close: () => void }) => {
  const xml = useSignal('')
  const found = useSignal<readonly VpnImported[] | undefined>(undefined)
  const read = async () => {
    found.value = (await askDaemon('POST /vpn/import-forticlient', { xml: xml.value })).connections
    return 'stays'
  }
  return (
    <DialogForm title="Read a FortiClient file" close={close} verb="Read" work={read}>
      <TextField
        label="The exported file"
        value={xml}
        required
        rows={8}
        hint="Nothing of it is stored. What FortiClient encrypted is left out."
      />
      {found.value?.length === 0 && <p role="status">The file has no connections.</p>}
      {found.value && found.value.length > 0 && (
        <ul class="items" aria-label="Connections of the file">
          {found.value.map(({ id, label, provider, server, port, username, needs }) => (
            <Item
              key={id}
              title={visibleName(label)}
              detail={
                <>
                  <div>
                    {PROVIDERS[provider]} · <span class="mono">{visibleName(`${server}:${port}`)}</span>
                    {username !== undefined && ` · ${visibleName(username)}`}
                  </div>
                  <div>Still needed: {visibleName(needs.join(', '))}</div>
                </>
              }
            />
          ))}
        </ul>
      )}
    </DialogForm>
  )
}

/** The tunnels to private networks, which maintainers dial and drop. */
export const VpnPage = () => {
  const list = useQuery('vpn', ['vpn', 'capabilities'], () => askDaemon('GET /vpn'))
  const mayChange = reaches(person.value?.role, 'maintainer')
  return (
    <PageFrame title="VPN">
      <Loaded query={list}>
        {({ links }) =>
          links.length === 0 ? (
            <p class="quiet">Tunnels to private networks appear here.</p>
          ) : (
            <ul class="items">
              {links.map(link => (
                <TunnelRow key={link.id} link={link} />
              ))}
            </ul>
          )
        }
      </Loaded>
      {mayChange && (
        <section class="stack" aria-label="More tunnels">
          <p>
            <a href={fragmentOf('connections', 'vpn')}>Set up a tunnel</a>: it is a connection, and is changed and
            removed on that page.
          </p>
          <p>
            <FormButton label="Read a FortiClient file" form={close => <ImportForm close={close} />} />
          </p>
        </section>
      )}
    </PageFrame>
  )
}
