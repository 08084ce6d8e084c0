import { findTmux } from '../../../../plugins/system/terminals/programs.js'
import { Tmux } from '../../../../plugins/system/terminals/tmux.js'
import { testBackend } from './terminals-backend-cases.js'

const tmux = await findTmux()
if (!tmux) console.error('tmux is not installed: terminals are tested without it alone')
if (!tmux && process.env.CI) throw new Error('tmux is not installed, and nothing may be left out here')

const uncaptured = (error: unknown) => {
  throw error
}
if (tmux)
  testBackend(
    'tmux',
    async (folder, shell, changed, capture) =>
      new Tmux({ program: tmux.path, folder, shell, changed, capture, uncaptured }),
  )
