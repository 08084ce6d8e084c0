import { useSignal } from '@preact/signals'
import type { ExitCountries, ExitLine, ExitLink } from '../../../../exit/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { Copyable } from '../../ui/copy.js'
import { DialogForm, FormButton } from '../../ui/dialog.js'
import { ChoiceField } from '../../ui/fields.js'
import { agoOf, momentOf, visibleName, visibleText } from '../../ui/format.js'
import { FaultLine, Item, Loaded, PageFrame } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'

const STATES = {
  up: ['good', 'Up'],
  starting: ['busy', 'Starting'],
  down: ['', 'Down'],
  unavailable: ['warn', 'Unavailable'],
  failed: ['bad', 'Failed'],
} as const
const PROVIDERS = {
  onion_router: 'Onion network',
  public_vpn_pool: 'Free servers of OpenVPN',
  wireguard: 'WireGuard',
} as const
const STEPS = {
  catalogue: 'Looking for servers',
  dial: 'Connecting',
  tunnel: 'Setting up the tunnel',
  proxy: 'Opening the proxy',
  check: 'Checking where it comes out',
} as const
const ANY = 'any'

const exitsChanged = (): void => refetch(new Set(['exit', 'capabilities']))

const names = new Intl.DisplayNames(undefined, { type: 'region' })
const nameOf = (country: string): string => `${names.of(country) ?? country} (${country})`

const wordsOf = (line: ExitLine): string | undefined => {
  if (line.kind === 'step') return STEPS[line.step]
  return line.kind === 'log' ? line.message : undefined
}

const StepLine = ({ text }: { text: string }) =>
  text === '' ? null : (
    <p class="quiet" role="status">
      {visibleText(text)}
    </p>
  )

const CountryForm = ({ link, list, close }: { link: ExitLink; list: ExitCountries; close: () => void }) => {
  const country = useSignal(link.country ?? ANY)
  const step = useSignal('')
  const { id } = link
  const use = async () => {
    const input = { id, ...(country.value !== ANY && { country: country.value }) }
    try {
      for await (const line of await askDaemon('POST /exit/{id}/use', input)) step.value = wordsOf(line) ?? step.value
    } finally {
      exitsChanged()
    }
  }
  const known = list.countries.some(each => each.country === link.country)
  const asked = link.country === undefined || known ? [] : [[link.country, nameOf(link.country)] as const]
  const choices = list.countries.map(({ country: value, servers, share }) => {
    const supply = servers === 1 ? '1 server' : `${servers} servers`
    return [value, servers === 0 ? nameOf(value) : `${nameOf(value)}, ${supply}, ${Math.round(share * 100)} %`] as const
  })
  return (
    <DialogForm title={`Country of ${visibleName(id)}`} close={close} verb="Use" work={use}>
      <ChoiceField
        label="Country"
        value={country}
        choices={[[ANY, 'Any: the provider chooses'], ...asked, ...choices]}
        {...(!list.live && { hint: 'The provider does not answer: this is an older list.' })}
      />
      <p class="quiet">Connections through it are closed. It is up once the world sees it in that country.</p>
      <StepLine text={step.value} />
    </DialogForm>
  )
}

const CountryDialog = ({ link, close }: { link: ExitLink; close: () => void }) => {
  const countries = useQuery(`exit countries ${link.id}`, [], () =>
    askDaemon('GET /exit/{id}/countries', { id: link.id }),
  )
  return <Loaded query={countries}>{list => <CountryForm link={link} list={list} close={close} />}</Loaded>
}

/** What a maintainer does with an exit, and for a collaborator the check. */
const ExitActions = ({ link }: { link: ExitLink }) => {
  const { id, state } = link
  const action = useAction()
  const step = useSignal('')
  const followed = (call: 'POST /exit/{id}/start' | 'POST /exit/{id}/rotate') => async () => {
    try {
      for await (const line of await askDaemon(call, { id })) step.value = wordsOf(line) ?? step.value
    } finally {
      step.value = ''
      exitsChanged()
    }
  }
  const check = async () => {
    await askDaemon('POST /exit/{id}/check', { id })
    exitsChanged()
  }
  const stop = async () => {
    await askDaemon('POST /exit/{id}/stop', { id })
    exitsChanged()
  }
  const mayChange = reaches(person.value?.role, 'maintainer')
  const about = visibleName(id)
  const isUp = state === 'up'
  return (
    <>
      {mayChange && !isUp && state !== 'starting' && (
        <ActionButton action={action} class="primary" work={followed('POST /exit/{id}/start')} about={about}>
          Start
        </ActionButton>
      )}
      {mayChange && (
        <FormButton label="Country" about={`of ${about}`} form={close => <CountryDialog link={link} close={close} />} />
      )}
      {mayChange && isUp && (
        <ActionButton action={action} work={followed('POST /exit/{id}/rotate')} about={about}>
          Other address
        </ActionButton>
      )}
      {isUp && (
        <ActionButton action={action} work={check} about={about}>
          Check
        </ActionButton>
      )}
      {mayChange && state !== 'down' && state !== 'unavailable' && (
        <ActionButton action={action} work={stop} about={about}>
          Stop
        </ActionButton>
      )}
      <StepLine text={step.value} />
      <FaultLine fault={action.fault} />
    </>
  )
}

const ExitRow = ({ link }: { link: ExitLink }) => {
  const { id, provider, state, country, observedCountry, ip, checkedAt, since, autoStart, detail, proxy } = link
  return (
    <Item
      title={visibleName(id)}
      state={STATES[state]}
      detail={
        <>
          <div>
            {PROVIDERS[provider]} · {country === undefined ? 'any country' : nameOf(country)}
            {since !== undefined && ` · since ${momentOf(since)}`}
            {autoStart && ' · starts with the sandbox'}
          </div>
          {ip !== undefined && (
            <div>
              The world sees <span class="mono">{visibleName(ip)}</span>
              {observedCountry !== undefined && ` in ${nameOf(observedCountry)}`}
              {checkedAt !== undefined && `, checked ${agoOf(checkedAt)}`}
            </div>
          )}
          <Copyable text={proxy} what="the proxy" />
          {detail !== undefined && <div>{visibleName(detail)}</div>}
        </>
      }
    >
      {reaches(person.value?.role, 'collaborator') && <ExitActions link={link} />}
    </Item>
  )
}

/** The ways out in other countries, which maintainers start, move and stop. */
export const ExitsPage = () => {
  const list = useQuery('exit', ['exit', 'capabilities'], () => askDaemon('GET /exit'))
  return (
    <PageFrame title="Exits">
      <Loaded query={list}>
        {({ links }) =>
          links.length === 0 ? (
            <p class="quiet">Ways out in other countries appear here.</p>
          ) : (
            <ul class="items">
              {links.map(link => (
                <ExitRow key={link.id} link={link} />
              ))}
            </ul>
          )
        }
      </Loaded>
      <p class="quiet">Only what is pointed at the proxy of an exit goes through it.</p>
      {reaches(person.value?.role, 'maintainer') && (
        <p>
          <a href={fragmentOf('connections', 'exit')}>Set up an exit</a>: it is a connection, and is changed and removed
          on that page.
        </p>
      )}
    </PageFrame>
  )
}
