import type { ProcessAccess } from '../processes/conversation-processes.js'
import { processTools } from '../processes/process-tools.js'
import { readSkill } from '../personas/skills.js'
import { browserTools } from '../turn/environment/browser.js'
import type { ConnectOffers } from '../turn/environment/connecting.js'
import type { PreparedTurn } from '../turn/environment/environment.js'
import type { TurnEnvironmentDeps } from '../turn/environment/environment-deps.js'
import { askedTools } from '../turn/environment/paying.js'
import { searchTools } from '../turn/environment/search.js'
import { treeCommand, type ProgramListeners, type TreeWall } from '../turn/environment/shell.js'
import { terminalTools } from '../turn/environment/terminal.js'
import type { Turn } from '../turn/turn.js'
import type { ToolParts } from './tool.js'

/** What other groups give to the tools of one turn. */
export const turnParts = (
  deps: TurnEnvironmentDeps,
  offers: ConnectOffers,
  turn: Turn,
  prepared: PreparedTurn,
  {
    wall,
    programs,
    access,
  }: { readonly wall: TreeWall; readonly programs: ProgramListeners; readonly access: () => ProcessAccess },
): ToolParts => {
  const { host, kept } = deps
  const { root, cwd, persona } = prepared
  return {
    skill: readSkill(host, prepared, wall.workspace),
    ...askedTools(deps, turn, persona),
    connecting: offers.of(turn),
    files: searchTools(host, prepared),
    processes: processTools(kept.processes, turn, prepared, { wall, programs, access }),
    browser: browserTools(host, turn, {
      ...{ trust: () => access().trust, near: persona?.powers.shell !== false },
      ...(persona && { capabilities: persona.capabilities }),
    }),
    terminal: terminalTools(host, turn, program =>
      treeCommand(wall, root, cwd, { ...program, env: { ...programs.env, ...program.env } }, programs.begun),
    ),
  }
}
