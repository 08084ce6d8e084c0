import type { Host } from '../../../../sdk/index.js'
import { needProgram, ownProgram } from '../../../../sdk/node/programs/run.js'
import type { TreeCommand, TreeProgram } from '../../providers/adapter.js'
import type { TerminalTools } from '../../tools/tool.js'
import type { Engine } from '../engine.js'
import type { Turn } from '../turn.js'
import { sessionNameOf } from './browser.js'

type TerminalHost = Pick<Host, 'call' | 'serves'>

const PURPOSE = 'handover of '
/** Without a wall the program starts where the terminal does. */
const IN_FOLDER = 'cd "$1" && shift && exec "$@"'

/** The terminal of a turn's conversation: a shell behind the turn's wall, which people type in. */
export const terminalTools = (
  host: TerminalHost,
  { conversationId, log }: Pick<Turn, 'conversationId' | 'log'>,
  walled: (program: TreeProgram) => Promise<TreeCommand>,
): TerminalTools => {
  const name = sessionNameOf(conversationId)
  const isOpen = async () =>
    (await host.call('terminals.running')).sessions.some(session => session.name === name && session.running)
  return {
    served: () => host.serves('terminals.run'),
    open: async () => {
      if (await isOpen()) return name
      const shell = (await ownProgram('bash')) ?? (await needProgram('sh'))
      const { program, args, env, cwd } = await walled({ program: shell, args: [], env: { TERM: 'xterm-256color' } })
      await host.call('terminals.run', {
        name,
        label: `Agent of ${conversationId}`.slice(0, 80),
        purpose: `${PURPOSE}${conversationId}`,
        command: [await needProgram('sh'), '-c', IN_FOLDER, 'sh', cwd, program, ...args],
        env: Object.entries(env).flatMap(([key, value]) => (value === undefined ? [] : [{ name: key, value }])),
      })
      log.push({ kind: 'terminal', session: name })
      return name
    },
    close: async () => void (await host.call('terminals.stop', { name })),
  }
}

/** Ends terminals whose turn does not wait for them any more: a daemon was killed meanwhile. */
export const endLeftTerminals = async (
  host: TerminalHost & Pick<Host, 'log'>,
  engine: Pick<Engine, 'live'>,
): Promise<void> => {
  try {
    if (!(await host.serves('terminals.running'))) return
    for (const { name, purpose, running } of (await host.call('terminals.running')).sessions) {
      if (!running || !purpose.startsWith(PURPOSE)) continue
      if (!engine.live(purpose.slice(PURPOSE.length))) await host.call('terminals.stop', { name })
    }
  } catch (error) {
    host.log.warn('ending terminals that were handed over failed', { error: String(error) })
  }
}
