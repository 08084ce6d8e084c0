import { useSignal } from '@preact/signals'
import type { CheckResult, Loop, LoopDesign, LoopIteration, LoopState } from '../../../../loops/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { AskButton, DialogForm, FormButton } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { agoOf, momentOf, visibleName, visibleText } from '../../ui/format.js'
import { FaultLine, Item, Loaded, PageFrame, type ToneWord } from '../../ui/page.js'
import { Pairs } from '../../ui/pairs.js'
import { useQuery } from '../../ui/query.js'
import { reaches, type PageProps } from '../registry.js'
import { DesignForm, LoopForm } from './loop-form.js'

const STATES: { readonly [state in LoopState]: ToneWord } = {
  running: ['busy', 'Running'],
  done: ['good', 'Done'],
  exhausted: ['warn', 'Out of rounds'],
  stalled: ['warn', 'No progress'],
  overspent: ['warn', 'Out of money'],
  stopped: ['', 'Stopped'],
  error: ['bad', 'Failed'],
}
const OUTCOMES: { readonly [outcome in LoopIteration['outcome']]: ToneWord } = {
  continue: ['', 'Not yet'],
  done: ['good', 'Done'],
  error: ['bad', 'Failed'],
}

const changed = () => refetch(new Set(['loops']))
const dollars = (usd: number): string => `$${usd.toFixed(2)}`

const Facts = ({ loop: { iterations, maxIterations, costUsd, detail, waitingFor } }: { loop: Loop }) => (
  <>
    <div>
      {`round ${iterations.at(-1)?.n ?? 0} of ${maxIterations}`}
      {costUsd > 0 && ` · ${dollars(costUsd)}`}
      {waitingFor !== undefined && (
        <>
          {' · '}
          <a href={fragmentOf('needs')}>waits for a person</a>
        </>
      )}
    </div>
    {detail !== undefined && <div dir="auto">{visibleName(detail)}</div>}
  </>
)

/** Goes on with a loop that gave up, with new ceilings. */
const ResumeForm = ({ loop, close }: { loop: Loop; close: () => void }) => {
  const { maxIterations, maxSpendUsd, iterations } = loop
  const conversationId: string = loop.conversationId
  const rounds = useSignal(String(Math.max(maxIterations, iterations.length + 5)))
  const spend = useSignal(maxSpendUsd === undefined ? '' : String(maxSpendUsd))
  const note = useSignal('')
  const resume = async () => {
    await askDaemon('POST /loops/{conversationId}/resume', {
      ...{ conversationId, maxIterations: Number(rounds.value) },
      ...(spend.value && { maxSpendUsd: Number(spend.value) }),
      ...(note.value && { note: note.value }),
    })
    changed()
  }
  return (
    <DialogForm title="Go on with the loop" close={close} verb="Go on" work={resume}>
      <TextField
        label="At most so many rounds"
        type="number"
        min="1"
        max="500"
        required
        value={rounds}
        hint="Earlier rounds count."
      />
      <TextField label="At most so many US dollars" type="number" min="0.01" step="0.01" value={spend} />
      <TextField label="A note for the next round" rows={3} value={note} />
    </DialogForm>
  )
}

/** What collaborators do with a loop. */
const LoopActions = ({ loop }: { loop: Loop }) => {
  const { state, goal } = loop
  const conversationId: string = loop.conversationId
  const action = useAction()
  return (
    <>
      {state === 'running' && (
        <ActionButton
          action={action}
          about={goal}
          work={async () => {
            await askDaemon('POST /loops/{conversationId}/stop', { conversationId })
            changed()
          }}
        >
          Stop
        </ActionButton>
      )}
      {state !== 'running' && state !== 'done' && (
        <FormButton label="Go on" about={goal} form={close => <ResumeForm loop={loop} close={close} />} />
      )}
      <FaultLine fault={action.fault} />
    </>
  )
}

const CheckLine = ({ check: { kind, ok, detail } }: { check: CheckResult }) => (
  <div dir="auto">
    {kind === 'command' ? 'Command' : 'Judge'} {ok ? 'holds' : 'does not hold'}
    {detail !== undefined && `: ${visibleText(detail)}`}
  </div>
)

const RoundRow = ({ loop: { conversationId }, round }: { loop: Loop; round: LoopIteration }) => {
  const { n, at, outcome, detail, costUsd = 0, changed: touched, document, checks = [] } = round
  return (
    <Item
      title={<a href={fragmentOf('c', conversationId)}>Round {n}</a>}
      state={OUTCOMES[outcome]}
      facts={<span class="quiet small">{momentOf(at)}</span>}
      detail={
        <>
          <div>
            {touched ? 'changed files' : 'changed nothing'}
            {costUsd > 0 && ` · ${dollars(costUsd)}`}
          </div>
          {document && (
            <div dir="auto">
              It says {document.done ? 'done' : 'not done'}: {visibleText(document.reason)}
            </div>
          )}
          {checks.map((check, at) => (
            <CheckLine key={at} check={check} />
          ))}
          {checks.length === 0 && !document && detail !== undefined && <div dir="auto">{visibleName(detail)}</div>}
        </>
      }
    />
  )
}

const Detail = ({ id }: { id: string }) => {
  const loop = useQuery(`loop ${id}`, ['loops'], () => askDaemon('GET /loops/{conversationId}', { conversationId: id }))
  return (
    <PageFrame
      title="Loop"
      tools={
        <>
          <a class="button" href={fragmentOf('c', id)}>
            Conversation
          </a>
          <a class="button" href={fragmentOf('loops')}>
            All loops
          </a>
        </>
      }
    >
      <Loaded query={loop}>
        {found => (
          <>
            <ul class="items">
              <Item title={visibleName(found.goal)} state={STATES[found.state]} detail={<Facts loop={found} />}>
                {reaches(person.value?.role, 'collaborator') && <LoopActions loop={found} />}
              </Item>
            </ul>
            <Pairs
              rows={[
                ['Started by', visibleName(found.startedBy)],
                [
                  'Checks',
                  found.checks
                    .map(check => visibleText(check.kind === 'command' ? check.command : check.rubric))
                    .join('\n'),
                ],
              ]}
            />
            <section aria-labelledby="rounds-heading">
              <h2 id="rounds-heading">Rounds</h2>
              {found.iterations.length === 0 ? (
                <p class="quiet">The first round has not ended yet.</p>
              ) : (
                <ul class="items">
                  {found.iterations.toReversed().map(round => (
                    <RoundRow key={round.n} loop={found} round={round} />
                  ))}
                </ul>
              )}
            </section>
          </>
        )}
      </Loaded>
    </PageFrame>
  )
}

const DesignRow = ({ design }: { design: LoopDesign }) => {
  const { id, name, description, checks, maxIterations } = design
  const role = person.value?.role
  return (
    <Item
      title={visibleName(name)}
      detail={<div dir="auto">{visibleName(description ?? `${checks.length} checks, ${maxIterations} rounds`)}</div>}
    >
      {reaches(role, 'collaborator') && (
        <FormButton label="Start" about={name} form={close => <LoopForm close={close} design={design} />} />
      )}
      {reaches(role, 'maintainer') && (
        <>
          <FormButton label="Edit" about={name} form={close => <DesignForm close={close} design={design} />} />
          <AskButton
            label="Remove"
            about={name}
            title={`Remove ${visibleName(name)}?`}
            work={async () => {
              await askDaemon('DELETE /loops/designs/{id}', { id })
              changed()
            }}
          >
            <p>Loops that were started from it stay.</p>
          </AskButton>
        </>
      )}
    </Item>
  )
}

const Designs = () => {
  const list = useQuery('loop designs', ['loops'], () => askDaemon('GET /loops/designs'))
  return (
    <section aria-labelledby="designs-heading">
      <div class="section-head">
        <h2 id="designs-heading">Designs</h2>
        {reaches(person.value?.role, 'maintainer') && (
          <FormButton label="Add a design" form={close => <DesignForm close={close} />} />
        )}
      </div>
      <Loaded query={list}>
        {({ designs, problems }) => (
          <>
            {problems.map(({ id, message }) => (
              <p key={`${id} ${message}`} class="notice bad" dir="auto">
                {id !== undefined && `${visibleName(id)}: `}
                {visibleName(message)}
              </p>
            ))}
            {designs.length === 0 ? (
              <p class="quiet">A design keeps checks and ceilings, to start loops from.</p>
            ) : (
              <ul class="items">
                {designs.map(design => (
                  <DesignRow key={design.id} design={design} />
                ))}
              </ul>
            )}
          </>
        )}
      </Loaded>
    </section>
  )
}

const List = () => {
  const list = useQuery('loops', ['loops'], () => askDaemon('GET /loops', { limit: 200 }))
  const starts = reaches(person.value?.role, 'collaborator')
  return (
    <PageFrame title="Loops">
      <section aria-labelledby="loops-heading">
        <div class="section-head">
          <h2 id="loops-heading">Conversations that repeat</h2>
          {starts && <FormButton label="Start a loop" primary form={close => <LoopForm close={close} />} />}
        </div>
        <Loaded query={list}>
          {({ loops }) =>
            loops.length === 0 ? (
              <p class="quiet">
                A loop repeats a task until something other than the agent says that the goal is met: a command, or
                another model.
              </p>
            ) : (
              <ul class="items">
                {loops.map(loop => (
                  <Item
                    key={loop.conversationId}
                    title={<a href={fragmentOf('loops', loop.conversationId)}>{visibleName(loop.goal)}</a>}
                    state={STATES[loop.state]}
                    detail={<Facts loop={loop} />}
                    facts={<span class="quiet small">{agoOf(loop.endedAt ?? loop.startedAt)}</span>}
                  >
                    {starts && <LoopActions loop={loop} />}
                  </Item>
                ))}
              </ul>
            )
          }
        </Loaded>
      </section>
      <Designs />
    </PageFrame>
  )
}

/** Loops and their designs, or one loop with its rounds. */
export const LoopsPage = ({ rest: [id] }: PageProps) => (id === undefined ? <List /> : <Detail id={id} />)
