import { refuse } from '../../../sdk/index.js'
import type { ToolParts } from './tool.js'

const noWallet = () => refuse('unavailable', 'this sandbox has no wallets')
const served = async () => false
const nobody = () => refuse('unavailable', 'nobody can be asked from here')
const noBrowser = () => refuse('unavailable', 'this sandbox has no browsers')
const noProcess = () => refuse('unavailable', 'commands cannot run in the background here')
const noTerminal = () => refuse('unavailable', 'this sandbox has no terminals')

/** Where no other group gives anything. */
export const NO_TOOL_PARTS: ToolParts = {
  skill: name => refuse('not-found', `this turn has no skill ${name}`),
  needs: { served, raise: nobody, withdraw: nobody },
  approvals: { served, file: () => refuse('unavailable', 'nothing can be proposed from here') },
  connecting: { served, cards: async () => [], finished: async () => undefined },
  paying: {
    ...{ served, cautious: true, earlier: async () => undefined, read: async () => {}, show: async () => {} },
    ...{ quote: noWallet, sign: noWallet, settle: noWallet },
  },
  files: { served, find: () => refuse('unavailable', 'this sandbox has no search: search with a command') },
  browser: {
    ...{ served, session: async () => undefined, code: noBrowser, origins: async () => undefined },
    of: () => ({ open: noBrowser, act: noBrowser, use: noBrowser, capture: noBrowser }),
  },
  terminal: { served, open: noTerminal, close: noTerminal },
  processes: { served, start: noProcess, all: () => [], one: noProcess, told: () => {} },
}
