import { useSignal } from '@preact/signals'
import type { CapabilitySummary } from '../../../../capabilities/contract.js'
import { Refusal } from '../../../../../sdk/refusal.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { useAction } from '../../ui/action.js'
import { AskButton, DialogForm, FormButton } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { countText, visibleName } from '../../ui/format.js'
import { FaultLine, Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'

const STATES = {
  active: ['good', 'Active'],
  pending: ['busy', 'Pending'],
  error: ['bad', 'Error'],
  inactive: ['', 'Inactive'],
} as const
const KINDS: { readonly [kind: string]: string } = {
  mcp: 'tools of a server',
  cli: 'a command-line tool',
  ssh: 'a server over SSH',
  agent: 'an agent program',
}

const changed = (): void => refetch(new Set(['capabilities', 'providers']))

/** Connects an agent program; its steps show while it is tried. */
const AgentForm = ({ close }: { close: () => void }) => {
  const id = useSignal('')
  const name = useSignal('')
  const command = useSignal('')
  const step = useSignal('')
  return (
    <DialogForm
      title="Connect an agent program"
      close={close}
      verb="Connect"
      work={async () => {
        const steps = await askDaemon('POST /capabilities', {
          id: id.value,
          kind: 'agent',
          config: { command: command.value, ...(name.value && { name: name.value }) },
        })
        let connected = false
        for await (const frame of steps) {
          if (frame.kind === 'log') step.value = frame.message
          if (frame.kind === 'result') connected = true
        }
        changed()
        if (!connected) throw new Refusal('unavailable', step.value || 'the program did not connect')
      }}
    >
      <p>A program that speaks the Agent Client Protocol, and is installed on this machine.</p>
      <TextField label="Id" required value={id} hint="Turns name it agent/<id>. Letters, digits, - and _." />
      <TextField label="Name" value={name} />
      <TextField label="Command" required value={command} hint="The program and its arguments. No shell reads it." />
      {step.value && (
        <p class="quiet" role="status">
          {visibleName(step.value)}
        </p>
      )}
    </DialogForm>
  )
}

const ConnectionRow = ({ connection }: { connection: CapabilitySummary }) => {
  const { id, label, kind, status, secrets, tools } = connection
  const action = useAction()
  const shown = visibleName(label)
  return (
    <Item
      title={shown}
      state={STATES[status.state] ?? ['', status.state]}
      detail={
        <>
          <span class="mono">{visibleName(id)}</span> · {KINDS[kind] ?? kind}
          {tools !== undefined && ` · ${countText(tools)} tools`}
          {secrets.length > 0 && ` · holds ${secrets.join(', ')}`}
          {status.detail && <div>{visibleName(status.detail)}</div>}
          <FaultLine fault={action.fault} />
        </>
      }
    >
      <button
        class="button"
        type="button"
        disabled={action.busy}
        onClick={() =>
          void action.run(async () => {
            await askDaemon('GET /capabilities/{id}/status', { id })
            changed()
          })
        }
      >
        Check<span class="visually-hidden"> {shown}</span>
      </button>
      <AskButton
        label="Disconnect"
        about={shown}
        title={`Disconnect ${shown}?`}
        work={async () => {
          await askDaemon('DELETE /capabilities/{id}', { id })
          changed()
        }}
      >
        <p>Its programs end, and its secrets and files are removed.</p>
      </AskButton>
    </Item>
  )
}

/** The connections of agents, and the agent programs that turns can run on. */
export const ConnectionSection = () => {
  const list = useQuery('capabilities', ['capabilities'], () => askDaemon('GET /capabilities'))
  // Model servers and models of this machine have their own sections.
  const others = list.data?.capabilities.filter(({ kind }) => kind !== 'endpoint' && kind !== 'localmodel') ?? []
  return (
    <section aria-labelledby="connections-heading">
      <div class="section-head">
        <h2 id="connections-heading">Connections</h2>
        <FormButton label="Connect an agent program" form={close => <AgentForm close={close} />} />
      </div>
      <Loaded query={list}>
        {({ recommendations }) => (
          <>
            {recommendations.map(({ card, evidence, reason }) => (
              <p key={`${card} ${evidence}`} class="quiet">
                Suggested: {visibleName(card)}. {visibleName(reason)} <span class="mono">{visibleName(evidence)}</span>
              </p>
            ))}
            {others.length === 0 ? (
              <p class="quiet">Outside systems and agent programs that are connected appear here.</p>
            ) : (
              <ul class="items">
                {others.map(connection => (
                  <ConnectionRow key={connection.id} connection={connection} />
                ))}
              </ul>
            )}
          </>
        )}
      </Loaded>
    </section>
  )
}
