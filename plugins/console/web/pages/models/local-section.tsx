import { useSignal } from '@preact/signals'
import type { EndpointRow, LocalInput, LocalModelFit } from '../../../../endpoints/contract.js'
import { askDaemon } from '../../data/api.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { AskButton, DialogForm, FormButton } from '../../ui/dialog.js'
import { ChoiceField, TextField } from '../../ui/fields.js'
import { countText, sizeTextOf, visibleName } from '../../ui/format.js'
import { FaultLine, Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { changed, STATES } from './server-section.js'

const CUSTOM = 'custom'

/** What a model needs, in a choice. */
const fitWords = ({ label, model, weightsBytes, windows }: LocalModelFit['options'][number]): string => {
  const largest = windows.findLast(({ fits }) => fits)
  const fits = !largest
    ? 'too large for this machine'
    : `${countText(largest.tokens)} tokens${largest.fullSpeed ? '' : ', slow'}`
  return `${visibleName(label || model)} (${sizeTextOf(weightsBytes)}; ${fits})`
}

const LocalForm = ({ close, fit }: { close: () => void; fit: LocalModelFit }) => {
  const id = useSignal('')
  const model = useSignal(fit.best.model || fit.instant.model || CUSTOM)
  const url = useSignal('')
  const context = useSignal('')
  return (
    <DialogForm
      title="Run a model on this machine"
      close={close}
      verb="Add"
      work={async () => {
        await askDaemon('POST /endpoints', {
          id: id.value,
          kind: 'local',
          model: model.value,
          ...(model.value === CUSTOM && { url: url.value.trim() }),
          ...(context.value && { context: Number(context.value) }),
        })
        changed()
      }}
    >
      <TextField label="Id" required value={id} hint="Turns name it endpoint/<id>. Letters, digits, - and _." />
      <ChoiceField
        label="Model"
        value={model}
        choices={[
          ...fit.options.map(option => [option.model, fitWords(option)] as const),
          [CUSTOM, 'A file of your own'],
        ]}
      />
      {model.value === CUSTOM && (
        <TextField
          label="Address of the file"
          required
          value={url}
          placeholder="https://models.example.org/small.gguf"
          hint="One file in the format GGUF."
        />
      )}
      <TextField
        label="Window in tokens"
        value={context}
        hint="Empty: the largest usual one that runs at full speed."
      />
    </DialogForm>
  )
}

/** What a local model was saved with, to be served or not. */
const inputOf = ({ id, label, local }: EndpointRow, enabled: boolean): LocalInput => ({
  id,
  label,
  kind: 'local',
  model: local!.model,
  ...(local!.wantedContext !== undefined && { context: local!.wantedContext }),
  enabled,
})

const LocalRow = ({ row, maintains }: { row: EndpointRow; maintains: boolean }) => {
  const { id, label, provider, status, detail } = row
  const local = row.local!
  const action = useAction()
  const shown = visibleName(label)
  const { receivedBytes = 0, totalBytes } = local
  const runs = local.enabled && status !== 'error'
  return (
    <Item
      title={shown}
      state={STATES[status]}
      detail={
        <>
          <div>
            <span class="mono">{visibleName(provider)}</span> · {visibleName(local.model)}
            {local.context > 0 && ` · ${countText(local.context)} tokens`}
            {local.weightsBytes > 0 && ` · weights ${sizeTextOf(local.weightsBytes)}`}
            {local.measuredBytes !== undefined && ` · uses ${sizeTextOf(local.measuredBytes)}`}
          </div>
          {totalBytes !== undefined && (
            <div>
              <progress aria-label={`Download of ${shown}`} max={totalBytes} value={receivedBytes} />{' '}
              {sizeTextOf(receivedBytes)} of {sizeTextOf(totalBytes)}
            </div>
          )}
          {detail && <div>{visibleName(detail)}</div>}
          <FaultLine fault={action.fault} />
        </>
      }
    >
      {maintains && (
        <>
          <ActionButton
            action={action}
            work={async () => {
              await askDaemon('POST /endpoints', inputOf(row, !runs))
              changed()
            }}
            about={shown}
          >
            {runs ? 'Stop' : 'Start'}
          </ActionButton>
          <AskButton
            label="Remove"
            about={shown}
            title={`Remove ${shown}?`}
            work={async () => {
              await askDaemon('DELETE /endpoints/{id}', { id })
              changed()
            }}
          >
            <p>Its process ends. Its weights stay on the disk, for the next entry that uses them.</p>
          </AskButton>
        </>
      )}
    </Item>
  )
}

/** What this machine can run, in a sentence. */
const FitLine = ({ fit }: { fit: LocalModelFit }) => (
  <p class="quiet">
    A model may take {sizeTextOf(fit.budgetBytes)} here, and {sizeTextOf(fit.fullSpeedBytes)} at full speed.
    {!fit.serverReady && ' The program llama-server, which runs models, is not installed or does not start.'}
  </p>
)

/** Models that this machine runs. */
export const LocalSection = ({ maintains }: { maintains: boolean }) => {
  const list = useQuery('endpoints', ['endpoints'], () => askDaemon('GET /endpoints'))
  const fit = useQuery('local-model-fit', ['endpoints'], () => askDaemon('GET /endpoints/local-model/fit'))
  const measured = fit.data
  return (
    <section aria-labelledby="local-heading">
      <div class="section-head">
        <h2 id="local-heading">Models on this machine</h2>
        {maintains && measured && (
          <FormButton label="Run a model" form={close => <LocalForm close={close} fit={measured} />} />
        )}
      </div>
      {measured && <FitLine fit={measured} />}
      <Loaded query={list}>
        {({ endpoints }) => (
          <ul class="items">
            {endpoints
              .filter(({ kind }) => kind === 'local')
              .map(row => (
                <LocalRow key={row.id} row={row} maintains={maintains} />
              ))}
          </ul>
        )}
      </Loaded>
    </section>
  )
}
