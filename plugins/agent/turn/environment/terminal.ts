import type { Host } from '../../../../sdk/index.js'
import { needProgram, ownProgram } from '../../../../sdk/node/programs/run.js'
import type { TreeCommand, TreeProgram } from '../../providers/adapter.js'
import type { TerminalTools } from '../../tools/tool.js'
import type { Engine } from '../engine.js'
import type { Turn } from '../turn.js'
import { sessionNameOf } from './browser.js'

type TerminalHost = Pick<Host, 'call' | 'serves'>

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
      // Written first, so that the next daemon finds the terminal of a turn that does not go on.
      await log.write({ kind: 'terminal', session: name })
      await host.call('terminals.run', {
        name,
        label: `Agent of ${conversationId}`.slice(0, 80),
        purpose: `handover of ${conversationId}`,
        command: [await needProgram('sh'), '-c', IN_FOLDER, 'sh', cwd, program, ...args],
        env: Object.entries(env).flatMap(([key, value]) => (value === undefined ? [] : [{ name: key, value }])),
      })
      return name
    },
    close: async () => void (await host.call('terminals.stop', { name })),
  }
}

/** Ends the terminal of a conversation whose turn handed it over when its daemon was killed, and does not go on. */
export const endLeftTerminal = async (
  host: TerminalHost & Pick<Host, 'log'>,
  engine: Pick<Engine, 'live'>,
  conversationId: string,
): Promise<void> => {
  try {
    if (engine.live(conversationId) || !(await host.serves('terminals.stop'))) return
    await host.call('terminals.stop', { name: sessionNameOf(conversationId) })
  } catch (error) {
    host.log.warn('ending a terminal that was handed over failed', {
      conversation: conversationId,
      error: String(error),
    })
  }
}
