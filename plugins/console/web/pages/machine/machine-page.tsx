import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { MachineUse, ProcessUse } from '../../../../system/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { FigureTable } from '../../ui/lists/figure-table.js'
import { countText, sizeTextOf, spanText, visibleName } from '../../ui/format.js'
import { Item, Loaded, PageFrame } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches, type PageProps } from '../registry.js'
import { Backups } from './backups.js'
import { Copyable } from '../../ui/copy.js'

const DISKS = {
  workspace: 'Disk of the workspace',
  state: 'Disk of the sandbox’s data',
  temp: 'Temporary disk',
} as const
const EVERY = 5_000

/** Whose programs they are. */
const ORIGINS: { readonly [origin in ProcessUse['origin']]: string } = {
  daemon: 'the sandbox itself',
  agent: 'agents',
  terminal: 'terminals',
  panel: 'development servers',
  extension: 'extensions',
  browser: 'browsers',
  other: 'others',
}

/** A short time in milliseconds. */
const shortText = (ms: number): string => (ms < 10 ? `${ms.toFixed(1)} ms` : `${countText(Math.round(ms))} ms`)

interface MeterProps {
  readonly label: string
  readonly part: number
  readonly text: string
}

/** How much of something is used. */
const Meter = ({ label, part, text }: MeterProps) => (
  <div class="meter">
    <span id={`meter-${label}`}>{label}</span>
    <span class="quiet small">{text}</span>
    <meter aria-labelledby={`meter-${label}`} min={0} max={1} high={0.8} optimum={0} value={Math.min(1, part)} />
  </div>
)

const Meters = ({ cpus, cpuPct, load, memory, disks, daemon }: MachineUse) => {
  const room = memory.limitBytes ?? memory.totalBytes
  return (
    <>
      <div class="meters">
        <Meter
          label="Processors"
          part={cpuPct / 100}
          text={`${Math.round(cpuPct)} % of ${cpus} · load ${load.map(one => one.toFixed(1)).join(', ')}`}
        />
        <Meter
          label="Memory"
          part={memory.usedBytes / room}
          text={`${sizeTextOf(memory.usedBytes)} of ${sizeTextOf(room)}`}
        />
        {disks.map(({ label, totalBytes, freeBytes }) => (
          <Meter
            key={label}
            label={DISKS[label] ?? label}
            part={1 - freeBytes / totalBytes}
            text={`${sizeTextOf(freeBytes)} free of ${sizeTextOf(totalBytes)}`}
          />
        ))}
      </div>
      <p class="quiet small">
        The sandbox itself has run for {spanText(daemon.uptimeMs)} and uses {sizeTextOf(daemon.rssBytes)}. It came at
        most {Math.round(daemon.loopLagMs)} ms late to its work.
      </p>
    </>
  )
}

const Processes = ({ processes }: Pick<MachineUse, 'processes'>) => (
  <div class="table-box">
    <table>
      <thead>
        <tr>
          <th scope="col">Program</th>
          <th scope="col">Belongs to</th>
          <th scope="col" class="number">
            Processor
          </th>
          <th scope="col" class="number">
            Memory
          </th>
        </tr>
      </thead>
      <tbody>
        {processes.map(({ pid, name, origin, session, conversationId, cpuPct, rssBytes }) => (
          <tr key={pid}>
            <td>
              <span class="mono">{visibleName(name)}</span> <span class="quiet small">{pid}</span>
            </td>
            <td>
              {conversationId ? (
                <a href={fragmentOf('c', conversationId)}>a conversation</a>
              ) : (
                `${origin}${session ? ` ${visibleName(session)}` : ''}`
              )}
            </td>
            <td class="number">{Math.round(cpuPct)} %</td>
            <td class="number">{sizeTextOf(rssBytes)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)

/** What each group did since the start, and what the processes of each kind use. */
const Plugins = () => {
  const query = useQuery('plugins', ['machine'], () => askDaemon('GET /system/plugins'))
  return (
    <section aria-labelledby="plugins-heading">
      <h2 id="plugins-heading">What each part costs</h2>
      <Loaded query={query}>
        {({ plugins, processes }) => (
          <>
            {processes.length > 0 && (
              <FigureTable head={['Programs of', 'Processes', 'Processor time', 'Memory']}>
                {processes.map(({ origin, session = '', processes: count, cpuSeconds, rssBytes }) => (
                  <tr key={`${origin} ${session}`}>
                    <th scope="row">{session ? visibleName(session) : ORIGINS[origin]}</th>
                    <td class="number">{countText(count)}</td>
                    <td class="number">{spanText(cpuSeconds * 1000)}</td>
                    <td class="number">{sizeTextOf(rssBytes)}</td>
                  </tr>
                ))}
              </FigureTable>
            )}
            <FigureTable head={['Group', 'Requests', 'Failed', 'Took each']}>
              {plugins.map(({ name, calls, errors, timed, answerSeconds }) => (
                <tr key={name}>
                  <th scope="row">{visibleName(name)}</th>
                  <td class="number">{countText(calls)}</td>
                  <td class="number">{countText(errors)}</td>
                  <td class="number">{shortText((1000 * answerSeconds) / Math.max(1, timed))}</td>
                </tr>
              ))}
            </FigureTable>
          </>
        )}
      </Loaded>
      <p class="quiet small">
        Since the sandbox started. With a control token a monitoring system reads all figures, as OpenMetrics:{' '}
        <Copyable text="/metrics" what="the path" />
      </p>
    </section>
  )
}

/** Reads what has no event for every change again, while the page is visible. */
const useTicks = () => {
  const times = useSignal(0)
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState !== 'visible') return
      times.value += 1
      refetch(new Set(['machine']))
    }, EVERY)
    return () => clearInterval(timer)
  }, [])
}

/** The features that are unavailable here, and why. */
const Shortfalls = () => {
  const info = useQuery('info', ['info'], () => askDaemon('GET /info'))
  const problems = useQuery('manifest problems', ['settings', 'areas', 'providers', 'capabilities'], () =>
    askDaemon('GET /system/manifest-problems'),
  )
  return (
    <>
      <section aria-labelledby="programs-heading">
        <h2 id="programs-heading">Programs that the sandbox uses</h2>
        <Loaded query={info}>
          {({ programs }) => (
            <ul class="items">
              {[...programs]
                .sort((a, b) => Number(a.present) - Number(b.present))
                .map(({ name, present, version, neededBy, install }) => (
                  <Item
                    key={name}
                    title={<span class="mono">{name}</span>}
                    detail={
                      <>
                        used by {neededBy.join(', ')}
                        {version && ` · ${visibleName(version)}`}
                        {!present && (
                          <div>
                            Install it with <Copyable text={install} what="the command" />
                          </div>
                        )}
                      </>
                    }
                    facts={present ? <span class="tag good">Found</span> : <span class="tag warn">Missing</span>}
                  />
                ))}
            </ul>
          )}
        </Loaded>
      </section>
      <section aria-labelledby="problems-heading">
        <h2 id="problems-heading">Problems in configuration files</h2>
        <Loaded query={problems}>
          {files =>
            files.length === 0 ? (
              <p class="quiet">No configuration file has errors.</p>
            ) : (
              <ul class="items">
                {files.map(({ path, problems: found }) => (
                  <Item
                    key={path}
                    title={<span class="mono">{visibleName(path)}</span>}
                    detail={found.map(({ detail, suggestion }, at) => (
                      <div key={at}>
                        {visibleName(detail)}
                        {suggestion && ` Did you mean ${visibleName(suggestion)}?`}
                      </div>
                    ))}
                  />
                ))}
              </ul>
            )
          }
        </Loaded>
      </section>
    </>
  )
}

/** The load of the machine, missing programs, and backups. */
export const MachinePage = (_: PageProps) => {
  const usage = useQuery('machine', ['machine'], () => askDaemon('GET /system/usage', {}))
  useTicks()
  return (
    <PageFrame title="Machine">
      <section aria-labelledby="usage-heading">
        <h2 id="usage-heading">Now</h2>
        <Loaded query={usage}>{({ machine }) => <Meters {...machine} />}</Loaded>
      </section>
      {reaches(person.value?.role, 'owner') && <Backups />}
      <Shortfalls />
      {usage.data && (
        <section aria-labelledby="processes-heading">
          <h2 id="processes-heading">The {countText(usage.data.machine.processes.length)} largest processes</h2>
          <Processes processes={usage.data.machine.processes} />
        </section>
      )}
      <Plugins />
    </PageFrame>
  )
}
