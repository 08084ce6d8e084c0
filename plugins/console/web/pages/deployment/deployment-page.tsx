import { signal, useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { ApplyRun } from '../../../../cli/contract.js'
import { askDaemon } from '../../data/api.js'
import { applyWord, CliFeed, cliWords, plannedEntries, type ShownCliLine } from '../../data/cli-feed.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { AskButton } from '../../ui/dialog.js'
import { momentOf, visibleName, visibleText } from '../../ui/format.js'
import { FaultLine, Item, Loaded, PageFrame, type ToneWord } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'

/** So near to the end its lines are followed, in pixels. */
const NEAR = 40
const ACTIONS: { readonly [action: string]: ToneWord } = {
  create: ['good', 'create'],
  update: ['busy', 'update'],
  delete: ['bad', 'delete'],
  none: ['', 'unchanged'],
}

/** What a feed shows, while the page does; `key` undefined: nothing is followed. */
const useCliFeed = (key: string | undefined, args?: readonly string[]) => {
  const lines = useSignal<readonly ShownCliLine[]>([])
  const fault = useSignal('')
  const runs = useSignal(false)
  useEffect(() => {
    lines.value = []
    fault.value = ''
    runs.value = key !== undefined
    if (key === undefined) return
    const feed = new CliFeed(args)
    const ends = [
      feed.lines.subscribe(value => (lines.value = value)),
      feed.fault.subscribe(value => (fault.value = value)),
      feed.runs.subscribe(value => (runs.value = value)),
    ]
    return () => {
      feed.stop()
      for (const end of ends) end()
    }
  }, [key])
  return { lines: lines.value, fault: fault.value, runs: runs.value }
}

const Lines = ({ label, lines }: { label: string; lines: readonly ShownCliLine[] }) => {
  const shown = lines.flatMap(({ key, line }) => {
    const words = cliWords(line)
    return words ? [{ key, ...words }] : []
  })
  const box = useRef<HTMLDivElement>(null)
  const follows = useRef(true)
  // Follows the end, unless the person scrolled away from it.
  useLayoutEffect(() => {
    if (follows.current && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [shown.length])
  if (shown.length === 0) return null
  const scrolled = ({ currentTarget: { scrollTop, scrollHeight, clientHeight } }: { currentTarget: HTMLElement }) => {
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR
  }
  return (
    <div ref={box} class="cli-lines mono small" onScroll={scrolled} role="log" aria-label={label} tabIndex={0}>
      {shown.map(({ key, text, bad }) => (
        <div key={key} class={bad ? 'bad-text' : undefined} dir="auto">
          {visibleText(text)}
        </div>
      ))}
    </div>
  )
}

/** The digest of what the newest plan on this page showed. */
const planned = signal<string | undefined>(undefined)

const Plan = () => {
  const asked = useSignal(0)
  const { lines, fault, runs } = useCliFeed(asked.value === 0 ? undefined : String(asked.value), ['deploy', 'plan'])
  const entries = plannedEntries(lines)
  const isOver = asked.value > 0 && !runs
  const digest = lines.findLast(({ line }) => line.kind === 'result')?.line.digest
  useEffect(() => {
    planned.value = typeof digest === 'string' ? digest : undefined
  }, [digest])
  return (
    <section aria-label="Plan">
      <div class="row apart">
        <h2>Plan</h2>
        <button class="button" type="button" disabled={runs} onClick={() => (asked.value += 1)}>
          {runs ? 'Asking the machines …' : 'Make a plan'}
        </button>
      </div>
      <p class="quiet small">What an apply would change on the machines. It changes nothing itself.</p>
      <FaultLine fault={fault} />
      {entries.length > 0 && (
        <ul class="items">
          {entries.map(({ id, type, action, detail }) => (
            <Item
              key={id}
              title={visibleName(id)}
              state={ACTIONS[action]}
              detail={visibleText([type, detail].filter(Boolean).join(' · '))}
            />
          ))}
        </ul>
      )}
      {isOver && !fault && entries.length === 0 && <p class="quiet">Nothing is declared, and nothing runs.</p>}
      {fault && <Lines label="Lines of the plan" lines={lines} />}
    </section>
  )
}

const Apply = ({ apply }: { apply: ApplyRun }) => {
  const { state, startedAt, endedAt, by, session, command } = apply
  const { lines, fault } = useCliFeed(state === 'idle' ? undefined : String(startedAt))
  return (
    <section aria-label="Apply">
      <div class="row apart">
        <h2>
          Apply <span class={`tag ${applyWord(apply)[0]}`}>{applyWord(apply)[1]}</span>
        </h2>
        {reaches(person.value?.role, 'maintainer') && (
          <AskButton
            label="Apply"
            about="the deployment"
            title="Apply the deployment?"
            work={async () => {
              await askDaemon('POST /cli/apply', planned.value === undefined ? {} : { expect: planned.value })
              refetch(new Set(['cli']))
            }}
          >
            <p>
              The machines will run what the inventory declares: what is new is started, what changed is replaced, and
              what is not declared any more is ended. Data of services stays.
              {planned.value !== undefined && ' If anything else is declared than the plan shows, nothing is applied.'}
            </p>
          </AskButton>
        )}
      </div>
      {startedAt !== undefined && (
        <p class="quiet small">
          {visibleText(by ?? '')} started it {momentOf(startedAt)}
          {endedAt !== undefined && `, it ended ${momentOf(endedAt)}`}
          {state !== 'succeeded' && command && ` at ${command}`}
          {state === 'running' && session !== undefined && reaches(person.value?.role, 'maintainer') && (
            <>
              . Its terminal: <a href={fragmentOf('terminals', session)}>{visibleName(session)}</a>
            </>
          )}
        </p>
      )}
      <FaultLine fault={fault} />
      <Lines label="Lines of the apply" lines={lines} />
    </section>
  )
}

/** What the inventory declares, brought onto the machines: a plan, the apply, and what it says. */
export const DeploymentPage = () => {
  const cli = useQuery('cli', ['cli'], () => askDaemon('GET /cli'))
  return (
    <PageFrame title="Deployment">
      <p class="quiet">
        What runs on which machine is declared in the <a href={fragmentOf('inventory')}>inventory</a>.
      </p>
      {reaches(person.value?.role, 'maintainer') && <Plan />}
      <Loaded query={cli}>{({ apply }) => <Apply apply={apply} />}</Loaded>
    </PageFrame>
  )
}
