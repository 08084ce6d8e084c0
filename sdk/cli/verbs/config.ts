import { ConfigFile } from '../../node/files/config-file.js'
import { acceptConfig, isAcceptedConfig } from '../../node/files/accepted-config.js'
import { whichDaemon } from '../daemon/connection.js'
import { printResult } from '../terminal/asked.js'
import { confirmed } from '../terminal/confirm.js'
import { SELF } from '../terminal/own-name.js'
import { oneLine, plain } from '../terminal/text.js'
import { CONNECTION, EXIT, CommandFailure, misused, type Verb } from '../verb.js'
import { say } from '../terminal/write.js'

/** The files that no call writes: the owner accepts them here. */
const FILES = ['.sandbox/config/templates.json'] as const

/** Accepts settings that may have come with the code. */
export const configVerb: Verb = {
  name: 'config',
  usage: 'accept [--yes]',
  summary: 'accept settings in files of the workspace that may have come with the code',
  examples: ['config accept'],
  notes: [
    'Until then a file that names a server or a secret counts as switched off; system manifest-problems lists '
      + 'these files.',
    'It accepts exactly what it shows: after another change of the file it is asked for again.',
  ],
  flags: { ...CONNECTION, yes: { help: 'do not ask' } },
  most: 1,
  run: async (terminal, given) => {
    if (given.args[0] !== 'accept') misused(`expected config accept, found config ${given.args.map(plain).join(' ')}`)
    const { url, daemon } = await whichDaemon(terminal, given)
    if (!daemon)
      throw new CommandFailure(
        EXIT.failed,
        `${url} is not a daemon of this user on this machine: run this command where it runs`,
      )
    const { workspace, data } = daemon
    const accepted: string[] = []
    for (const path of FILES) {
      const { keys, wrong } = await new ConfigFile(workspace, path, 'settings').load()
      if (wrong !== undefined) throw new CommandFailure(EXIT.failed, wrong)
      if (Object.keys(keys).length === 0 || isAcceptedConfig(data, path, keys)) continue
      if (!given.on('yes')) {
        say(terminal, `${path}:\n${plain(JSON.stringify(keys, undefined, 2))}\n`)
        if (!(await confirmed(terminal, given, `accept ${oneLine(path)}?`, '--yes'))) return EXIT.failed
      }
      await acceptConfig(data, path, keys)
      accepted.push(path)
    }
    return printResult(terminal, given, { accepted }, () =>
      accepted.length > 0
        ? accepted.map(path => `accepted ${oneLine(path)}`)
        : [`nothing waits to be accepted; ${SELF} system manifest-problems lists what else is not in force`],
    )
  },
}
