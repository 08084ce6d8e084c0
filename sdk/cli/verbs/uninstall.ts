import { existsSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { dataFolders } from '../../node/files/state-folder.js'
import { ownEnv, ownProgram, run } from '../../node/programs/run.js'
import { packageFolder } from '../../node/programs/package.js'
import { everyGitdir, gitdirsIn } from '../../node/wall/gitdirs.js'
import { runningDaemons, stateRoot } from '../daemon/daemon.js'
import { commandPath, removeCommand } from '../daemon/link.js'
import { servicesOf } from '../daemon/service-manager.js'
import { serviceName } from '../daemon/service-unit.js'
import { printResult } from '../terminal/asked.js'
import { confirmed } from '../terminal/confirm.js'
import { isMadeCommand } from '../terminal/own-name.js'
import { counted, oneLine } from '../terminal/text.js'
import { EXIT, CommandFailure, type GivenArguments, type Terminal, type Verb } from '../verb.js'

/** Removes what this program made outside its own folder. */
export const uninstall: Verb = {
  name: 'uninstall',
  usage: '[--data] [--yes]',
  summary: 'remove the command of link, the services and, if you say so, the data',
  examples: ['uninstall', 'uninstall --data --yes'],
  notes: [
    'Data are the conversations, private copies, secrets and backups of every workspace of this user. What was not '
      + 'landed is lost with them; the workspaces stay as they are, and so does the history of their repositories.',
    'Without --data it asks for them at a terminal, and keeps them elsewhere. A data folder that was chosen with serve '
      + '--data is kept.',
    'The program itself lies in the folder that it names at the end.',
  ],
  flags: {
    data: { help: 'remove the data too' },
    yes: { help: 'do not ask' },
    json: { help: 'print JSON, one value a line' },
  },
  most: 0,
  run: async (terminal, given) => {
    const services = await servicesOf(terminal)
    const state = stateRoot(terminal.env)
    const all = dataFolders(state).filter(folder => existsSync(folder))
    // A folder that somebody chose may hold more than data of a daemon.
    const folders = all.filter(folder => dirname(folder) === state)
    const kept = new Set(services.workspaces)
    const others = (await runningDaemons(terminal)).filter(({ workspace }) => !kept.has(workspace))
    const withData = await wantsData(terminal, given, folders)
    if (withData && others.length > 0) {
      const rows = others.map(({ pid, workspace }) => `  process ${pid}, ${oneLine(workspace)}`)
      throw new CommandFailure(EXIT.refused, `stop these daemons first; nothing was removed:\n${rows.join('\n')}`)
    }
    if (!given.on('yes') && (services.workspaces.length > 0 || isMadeCommand(commandPath(terminal)))) {
      const what = [
        ...(isMadeCommand(commandPath(terminal)) ? [commandPath(terminal)] : []),
        ...services.workspaces.map(serviceName),
      ]
      if (!(await confirmed(terminal, given, `remove ${what.map(oneLine).join(', ')}?`, '--yes'))) return EXIT.failed
    }
    for (const workspace of services.workspaces) await services.manager!.remove(workspace)
    const link = await removeCommand(terminal)
    const histories = withData ? await removeData(state, folders) : []
    const removed = { link, services: services.workspaces.map(serviceName), data: withData ? folders : [] }
    const program = packageFolder(terminal.root)
    const data = withData ? all.filter(folder => !folders.includes(folder)) : all
    return printResult(terminal, given, { removed, kept: { program, data, histories } }, () => [
      ...(removed.link === undefined ? [] : [`removed ${oneLine(removed.link)}`]),
      ...removed.services.map(name => `removed the service ${name}; its daemon is stopped`),
      ...removed.data.map(folder => `removed the data in ${oneLine(folder)}`),
      ...(removed.link === undefined && removed.services.length + removed.data.length === 0
        ? [
            data.length > 0
              ? 'there is no link and no service to remove'
              : 'there is no link, no service and no data to remove',
          ]
        : []),
      ...data.map(folder => `kept the data in ${oneLine(folder)}`),
      ...histories.map(folder => `kept ${oneLine(folder)}: the history of repositories of the workspace is there`),
      `the program itself is in ${oneLine(program)}: ${howToRemove(program)}`,
    ])
  },
}

const howToRemove = (program: string): string =>
  /[\\/]node_modules[\\/][^\\/]+$/.test(program)
    ? 'npm uninstall --global sandbox-daemon removes it'
    : 'delete that folder to remove it'

const wantsData = async (terminal: Terminal, given: GivenArguments, folders: readonly string[]): Promise<boolean> => {
  if (folders.length === 0) return given.on('data')
  const question = `remove the data of ${counted(folders.length, 'workspace')} too, and all that was not landed?`
  if (given.on('data')) return given.on('yes') || confirmed(terminal, given, question, '--yes')
  return terminal.interactive && !given.on('yes') && !given.on('json') && confirmed(terminal, given, question, '--data')
}

/** Ends the terminals of a data folder, which outlive its daemon. */
const endTerminals = async (data: string): Promise<void> => {
  const cwd = join(data, 'system', 'terminals')
  const sockets = await readdir(cwd).catch(() => [])
  const program = sockets.length > 0 ? await ownProgram('tmux') : undefined
  if (program === undefined) return
  // One that has no server answers with a failure.
  for (const socket of sockets)
    await run(program, ['-S', socket, '-N', 'kill-server'], { cwd, env: await ownEnv(), timeoutMs: 10_000 })
}

/**
 * Removes data folders, and what daemons keep beside them. The git folders of repositories that were cloned or begun
 * here stay, since folders of the workspace point to them; they are returned.
 */
const removeData = async (state: string, folders: readonly string[]): Promise<string[]> => {
  const histories: string[] = []
  for (const folder of folders) {
    await endTerminals(folder)
    const kept = (await everyGitdir(folder)).length > 0 ? gitdirsIn(folder) : undefined
    if (kept !== undefined) histories.push(kept)
    for (const name of kept === undefined ? [''] : await readdir(folder))
      if (join(folder, name) !== kept) await rm(join(folder, name), { recursive: true, force: true })
  }
  for (const name of ['elsewhere', 'compiled', 'sample', 'link-offered'])
    await rm(join(state, name), { recursive: true, force: true })
  return histories
}
