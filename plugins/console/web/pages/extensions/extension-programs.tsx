import type { ExtensionRecord, ExtensionProcessStatus } from '../../../../extensions/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { AddressLink } from '../../ui/address-link.js'
import { agoOf, visibleName } from '../../ui/format.js'
import { FaultLine, Item, type ToneWord } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'

const STATES: { readonly [state in ExtensionProcessStatus['state']]: ToneWord } = {
  running: ['good', 'Runs'],
  starting: ['busy', 'Starts'],
  stopped: ['', 'Stopped'],
  exited: ['', 'Ended'],
  restarting: ['warn', 'Starts again'],
  quarantined: ['bad', 'Stopped after repeated failures'],
}

interface ProcessRowProps {
  readonly id: string
  readonly name: string
  readonly command: string
  readonly maintains: boolean
}

const ProcessRow = ({ id, name, command, maintains }: ProcessRowProps) => {
  const action = useAction()
  const { data, error } = useQuery(`process ${id} ${name}`, ['extensions'], () =>
    askDaemon('GET /extensions/{id}/processes/{name}', { id, name }),
  )
  const active = data !== undefined && ['running', 'starting', 'restarting'].includes(data.state)
  const act = async () => {
    if (active) await askDaemon('POST /extensions/{id}/processes/{name}/stop', { id, name })
    else await askDaemon('POST /extensions/{id}/processes/{name}/start', { id, name })
    refetch(new Set(['extensions']))
  }
  const facts = [
    data?.port !== undefined && `port ${data.port}`,
    data?.running && data.since !== undefined && `started ${agoOf(data.since)}`,
    data && !data.running && data.exitCode !== undefined && `ended with ${data.exitCode}`,
    data && data.restarts > 0 && `started again ${data.restarts} times`,
    data?.detail !== undefined && visibleName(data.detail),
    error !== undefined && !data && (error as Error).message,
  ].filter(Boolean)
  return (
    <Item
      title={
        maintains && data?.running ? (
          <a href={fragmentOf('terminals', data.session)}>{visibleName(name)}</a>
        ) : (
          visibleName(name)
        )
      }
      state={data && (STATES[data.state] ?? ['', data.state])}
      detail={
        <>
          <span class="mono">{visibleName(command)}</span>
          {facts.length > 0 && ` · ${facts.join(' · ')}`}
          {data?.previewUrl !== undefined && (
            <>
              {' '}
              <AddressLink address={data.previewUrl} label="Preview" />
            </>
          )}
          <FaultLine fault={action.fault} />
        </>
      }
    >
      {maintains && data && (
        <ActionButton action={action} work={act} about={visibleName(name)}>
          {active ? 'Stop' : 'Start'}
        </ActionButton>
      )}
    </Item>
  )
}

/** The background programs of an extension; nothing where it declares none. */
export const ProgramsOfExtension = ({ record, maintains }: { record: ExtensionRecord; maintains: boolean }) => {
  const declared = record.manifest.contributes?.processes ?? []
  if (declared.length === 0) return null
  return (
    <section aria-labelledby="processes-heading">
      <h2 id="processes-heading">Programs</h2>
      <ul class="items">
        {declared.map(({ name, command }) => (
          <ProcessRow key={name} id={record.id} name={name} command={command} maintains={maintains} />
        ))}
      </ul>
    </section>
  )
}
