import { workNetwork } from '../../../sdk/node/programs/work-network.js'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { allows, type Handlers, type Host, Refusal, ignored } from '../../../sdk/index.js'
import { reachFor } from '../../../sdk/node/access/asked-reach.js'
import { record } from '../../../sdk/node/record/record.js'
import { missingProgram } from '../../../sdk/node/programs/run.js'
import type { System, TerminalCalls, TerminalWorkCalls } from '../contract.js'
import type { Backend } from './backend.js'
import { Capture, type OpenCapture } from './capture.js'
import { findTmux } from './programs.js'
import { Ptys } from './ptys.js'
import { shellCommand } from './shell.js'
import { WorkTerminals } from './work-terminals.js'
import { Terminals } from './terminals.js'
import { Tmux } from './tmux.js'

type TerminalHost = Pick<Host, 'call' | 'emit' | 'serves' | 'log' | 'on' | 'place' | 'stopping'>

/** Serves the terminals; their backend is chosen and started at the first use. */
export const terminals = (
  host: TerminalHost,
): Pick<Handlers<System>, keyof TerminalCalls | keyof TerminalWorkCalls> => {
  const changed = (name?: string) =>
    void host
      .call('kernel.events.publish', { domain: 'terminals', ...(name !== undefined && { key: name }) })
      .catch(ignored('clients read the state again when they connect'))
  let found: Promise<Backend> | undefined
  const backend = () =>
    (found ??= findBackend(host, () => ended()).catch(error => {
      found = undefined
      throw error
    }))
  const work = new WorkTerminals({
    workspace: host.place.workspace,
    backend,
    changed,
    ended: (name, purpose, exitCode) =>
      host.emit('terminal.ended', { name, purpose, ...(exitCode !== undefined && { exitCode }) }),
  })
  const ended = () => {
    changed()
    void work.check().catch(error => host.log.warn('reporting the end of a terminal failed', { error: String(error) }))
  }
  host.stopping(async () => (await found)?.close())
  // Terminals that outlived the last daemon are logged before the first call.
  host.on(
    'daemon.ready',
    () =>
      void resume(host, backend, work).catch(error =>
        host.log.warn('logging terminals failed', { error: String(error) }),
      ),
  )

  const all = new Terminals({
    workspace: host.place.workspace,
    backend,
    changed,
    sees: async (caller, folder = '.') => allows(await reachFor(host, caller), folder, 'read'),
    recorded: (what, name, context) => record(host, { type: `terminal.${what}`, extra: { name } }, context),
  })

  return {
    'GET /system/terminals': async (_, { caller }) => ({
      sessions: await all.list(caller).catch(error => (isMissing(error) ? [] : Promise.reject(error))),
    }),
    'POST /system/terminals': (input, context) => all.open(input, context),
    ...work.handlers(),
    'terminals.processes': async () => {
      const sessions = found ? await (await found).list() : []
      return { processes: sessions.flatMap(({ name, pid, running }) => (running && pid ? { name, pid } : [])) }
    },
    'DELETE /system/terminals/{name}': async ({ name }, context) => {
      await all.kill(name, context)
      await work.check()
      return { ok: true }
    },
    'GET /system/terminals/{name}/scrollback': ({ name, lines }, { caller }) => all.scrollback(name, lines, caller),
    'GET /system/terminal': (input, context) => all.attach(input, context),
  }
}

const isMissing = (error: unknown): boolean => error instanceof Refusal && error.reason === 'missing-program'

const folderOf = ({ place }: TerminalHost): string => join(place.folder, 'terminals')

const resume = async (host: TerminalHost, backend: () => Promise<Backend>, work: WorkTerminals): Promise<void> => {
  const before = await readdir(folderOf(host)).catch(() => [])
  if (!before.length) return
  await (await backend()).resume()
  await work.resume()
}

const findBackend = async (host: TerminalHost, changed: () => void): Promise<Backend> => {
  const { place, log } = host
  const tmux = await findTmux()
  const shell = (opening: Parameters<typeof shellCommand>[1]) => shellCommand(place, opening, workNetwork(host))
  const capture: OpenCapture = (name, size) => Capture.open(join(place.logs, 'terminals', `${name}.log`), size)
  const uncaptured = (error: unknown) => log.warn('logging a terminal failed', { error: String(error) })
  if (tmux) return new Tmux({ program: tmux.path, folder: folderOf(host), shell, changed, capture, uncaptured })
  return Ptys.open(shell, changed, capture).catch(() => missingProgram('tmux'))
}
