import { useSignal } from '@preact/signals'
import type { RuleMoment, RulesTried } from '../../../../settings/contract.js'
import { askDaemon } from '../../data/api.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ChoiceField, TextField } from '../../ui/fields.js'
import { visibleText } from '../../ui/format.js'
import { FaultLine, Item } from '../../ui/page.js'
import { reaches } from '../registry.js'
import { linesIn } from './setting-fields.js'
import { MOMENTS } from './standing-rules.js'

const OUTCOMES = [
  ['', 'Not known'],
  ['clean', 'Clean'],
  ['error', 'A check did not pass'],
  ['conflict', 'It has conflicts'],
] as const

/** Tries which rules would act on an occasion; runs nothing. */
export const RuleTrial = () => {
  const moment = useSignal<RuleMoment>('turn.ending')
  const repos = useSignal('')
  const paths = useSignal('')
  const outcome = useSignal<(typeof OUTCOMES)[number][0]>('')
  const tried = useSignal<RulesTried | undefined>(undefined)
  const action = useAction()
  if (!reaches(person.value?.role, 'collaborator')) return null
  const test = async () => {
    const facts = {
      ...(repos.value.trim() && { repos: linesIn(repos.value) }),
      ...(paths.value.trim() && { paths: linesIn(paths.value) }),
      ...(outcome.value && { outcome: outcome.value }),
    }
    tried.value = await askDaemon('POST /settings/rules/test', { moment: moment.value, facts })
  }
  return (
    <section aria-labelledby="try-rules">
      <h2 id="try-rules">Try the rules</h2>
      <form
        class="stack"
        onSubmit={event => {
          event.preventDefault()
          void action.run(test)
        }}
      >
        <ChoiceField label="At the moment" value={moment} choices={MOMENTS} />
        <TextField
          label="Affected repositories"
          rows={2}
          value={repos}
          hint="One a line; root is the workspace’s own."
        />
        <TextField label="Changed paths" rows={3} value={paths} hint="One a line, from the workspace root." />
        <ChoiceField label="How the work ended" value={outcome} choices={OUTCOMES} />
        <FaultLine fault={action.fault} />
        <div class="row">
          <button class="button" type="submit" disabled={action.busy}>
            Try
          </button>
        </div>
      </form>
      <div role="status">
        {tried.value && (
          <>
            <p>
              {tried.value.matched.length === 0 ? 'No rule would act.' : 'These would act:'}
              {tried.value.verdict
                && (tried.value.verdict === 'allow' ? ' The work may go on.' : ' It waits for a person.')}
            </p>
            <ul class="items">
              {tried.value.matched.map(({ id, label }) => (
                <Item key={id} title={visibleText(label)} state={['good', 'Acts']} />
              ))}
              {tried.value.skipped.map(({ id, why }) => (
                <Item key={id} title={visibleText(id)} detail={visibleText(why)} />
              ))}
            </ul>
          </>
        )}
      </div>
    </section>
  )
}
