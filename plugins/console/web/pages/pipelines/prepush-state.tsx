import type { PrepushRun } from '../../../../pipelines/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { visibleName } from '../../ui/format.js'
import { FaultLine } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'
import { TextBlock } from '../../ui/text-block.js'
import { Copyable } from '../../ui/copy.js'

const WORDS: { readonly [status in PrepushRun['status']]: string } = {
  idle: 'No check before a push has run since the start.',
  running: 'A check before a push runs.',
  passed: 'The last check before a push passed.',
  failed: 'The last check before a push failed.',
  error: 'The last check before a push could not be run.',
  cancelled: 'The last check before a push was stopped.',
}

/** How the checks before a push are, with what they wrote; maintainers start and stop them. */
export const PrepushState = () => {
  const query = useQuery('prepush', ['prepush', 'settings'], () => askDaemon('GET /prepush/state'))
  const action = useAction()
  const ask = (call: 'POST /prepush/run' | 'POST /prepush/cancel') => async () => {
    await askDaemon(call)
    refetch(new Set(['prepush', 'ci']))
  }
  if (!query.data) return <></>
  const { status, command, output } = query.data
  return (
    <section class="stack" aria-label="Checks before a push">
      <div class="row">
        <p>
          {WORDS[status]}{' '}
          {command && (
            <Copyable text={command} what="the command">
              {visibleName(command)}
            </Copyable>
          )}
        </p>
        {reaches(person.value?.role, 'maintainer')
          && (status === 'running' ? (
            <ActionButton action={action} work={ask('POST /prepush/cancel')}>
              Stop the check
            </ActionButton>
          ) : (
            <ActionButton action={action} work={ask('POST /prepush/run')}>
              Check now
            </ActionButton>
          ))}
        <FaultLine fault={action.fault} />
      </div>
      {output && (
        <details open={status !== 'passed'}>
          <summary>What it wrote</summary>
          <TextBlock class="said-text" dir="auto" label="What the check wrote" what="what it wrote" text={output} />
        </details>
      )}
    </section>
  )
}
