import { useSignal } from '@preact/signals'
import type { LogFile, LogKind } from '../../../../logs/contract.js'
import { askDaemon } from '../../data/api.js'
import { fragmentOf } from '../../data/route.js'
import { ChoiceField, TextField } from '../../ui/fields.js'
import { agoOf, momentOf, sizeTextOf, visibleName } from '../../ui/format.js'
import { Icon } from '../../ui/icons.js'
import { Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import type { PageProps } from '../registry.js'
import { LogPane } from './log-pane.js'
import { NothingChosen, TwoPanes } from '../../ui/two-panes.js'

const KINDS = [
  ['', 'Every kind'],
  ['daemon', 'Sandbox'],
  ['plugin', 'Groups'],
  ['terminal', 'Terminals'],
  ['run', 'Commands of agents'],
  ['crash', 'Crashes'],
] as const satisfies readonly (readonly [LogKind | '', string])[]

const LogLink = ({ file, current }: { file: LogFile; current: boolean }) => (
  <li>
    <a class="side-link" href={fragmentOf('logs', file.name)} aria-current={current ? 'page' : undefined}>
      <span class="mono">{visibleName(file.name)}</span>
      <span class="quiet small row apart">
        <span title={momentOf(file.modifiedAt)}>{agoOf(file.modifiedAt)}</span>
        <span>{sizeTextOf(file.sizeBytes)}</span>
      </span>
    </a>
  </li>
)

/** The logs of the sandbox, its terminals and the commands of agents. */
export const LogsPage = ({ rest: [name] }: PageProps) => {
  const kind = useSignal<(typeof KINDS)[number][0]>('')
  const words = useSignal('')
  const files = useQuery('logs', ['logs'], () => askDaemon('GET /logs', {}))
  const fits = (file: LogFile) =>
    (kind.value === '' || file.kind === kind.value) && file.name.toLowerCase().includes(words.value.toLowerCase())
  return (
    <>
      <header class="page-head">
        {name !== undefined && (
          <a class="button plainly narrow-only" href={fragmentOf('logs')} aria-label="Back to the logs">
            <Icon name="back" />
          </a>
        )}
        <h1 class="grow">Logs</h1>
      </header>
      <TwoPanes
        chosen={name !== undefined}
        detail={
          name === undefined ? (
            <NothingChosen>Choose a log to read it.</NothingChosen>
          ) : (
            <LogPane key={name} name={name} />
          )
        }
      >
        <div class="side-filters">
          <ChoiceField label="Kind" value={kind} choices={KINDS} />
          <TextField label="Name" type="search" value={words} />
        </div>
        <Loaded query={files}>
          {({ files: all }) => {
            const found = all.filter(fits)
            return found.length ? (
              <ul class="side-list" aria-label="Log files">
                {found.map(file => (
                  <LogLink key={file.name} file={file} current={file.name === name} />
                ))}
              </ul>
            ) : (
              <p class="quiet side-note">
                {all.length ? 'No log fits these filters.' : 'Logs appear here as soon as something is written.'}
              </p>
            )
          }}
        </Loaded>
      </TwoPanes>
    </>
  )
}
