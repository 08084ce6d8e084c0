import { Refusal } from '../../../sdk/index.js'
import type { NetworkReach } from '../../../sdk/node/network/policy.js'
import type { WallSpec } from '../../../sdk/node/wall/wall.js'
import type { OfferedTool, SharedProgram, ToolResult, TreeCommand, TreeProgram } from '../providers/adapter.js'
import type { References } from '../secrets/references.js'
import type { PreparedTurn } from '../turn/environment/environment.js'
import type { ToolCategory } from '../turn/frames/frames.js'
import { aroundOf, type ProgramListeners, treeCommand, turnPrograms } from '../turn/environment/shell.js'
import type { Diagnose } from '../diagnostics/diagnose-in.js'
import type { KnownFiles } from './known-files.js'
import { asMeant, pathAsMeant } from '../tool-inputs/as-meant.js'
import { hiddenBy, toolsFor } from '../personas/worn.js'
import type { ToolSchema } from './schema.js'
import type { CallContext, Description, Tool, ToolParts } from './tool.js'
import { NO_TOOL_PARTS } from './tool-parts.js'
import { textOf } from './content.js'
import { tools } from './tools.js'
import { readFileAt, stamp, type Rooted } from './tree.js'

/** The summary of a call before it runs. */
export interface CallSummary extends Description {
  readonly category: ToolCategory
}

/** The sandbox tools, bound to the tree of one turn. */
export interface Toolbox {
  /** The summary of a call, or why it is refused: no such tool, or an invalid input. */
  face(name: string, input: object): CallSummary | { refused: string }
  run(name: string, input: object, signal: AbortSignal, callContext: CallContext): Promise<ToolResult>
  stamp(path: string): Promise<string | undefined>
  /** The tools that the turn may use. */
  offered(allowed?: readonly string[]): Promise<readonly OfferedTool[]>
  walled(program: TreeProgram): Promise<TreeCommand>
  shared(program: TreeProgram): Promise<SharedProgram | undefined>
}

/** Tools that change the text of a file. */
const REWRITES = new Set(['Write', 'Append', 'Edit'])
const LOOKS = new Set<ToolCategory>(['read', 'search', 'think'])

/** The schema of a tool; without line hashes an edit names no lines. */
export const offeredSchema = (tool: Tool, lineHashes: boolean): ToolSchema => {
  const schema = tool.schema()
  if (lineHashes || schema.name !== 'Edit') return schema
  const { from: _from, to: _to, after: _after, ...properties } = schema.input.properties ?? {}
  return { ...schema, description: 'Replace texts of a file.', input: { ...schema.input, properties } }
}

/** The sandbox tools in one tree. */
export const toolbox = (
  {
    root,
    cwd,
    folders,
    skills = [],
    persona,
    agentFolders = [],
    ownPlace,
    lineHashes = false,
    documents,
    outputs,
    known,
    diagnose,
  }: PreparedTurn & { readonly known?: KnownFiles | undefined; readonly diagnose?: Diagnose | undefined },
  wall: Omit<WallSpec, 'cwd' | 'env'>,
  reach: () => Promise<NetworkReach>,
  listeners: ProgramListeners,
  references: References,
  given: Partial<ToolParts> = {},
): Toolbox => {
  const parts = { ...NO_TOOL_PARTS, ...given }
  const around = aroundOf(wall)
  const tree: Rooted = {
    root,
    ...(folders && { folders }),
    ...(around && { around }),
    ...(documents !== undefined && { documents: { workspace: wall.workspace, folder: documents } }),
    ...(outputs !== undefined && { outputs }),
    hidden: hiddenBy(wall),
  }
  const { shorten } = listeners
  const roots = [wall.workspace, root]
  return {
    face: (name, input) => {
      const tool = tools[name]
      if (!tool || !Object.hasOwn(tools, name))
        return { refused: `there is no tool ${name.slice(0, 80)}; expected one of ${Object.keys(tools).join(', ')}` }
      try {
        return { category: tool.category, ...tool.describe(tool.check(asMeant(name, input, roots))) }
      } catch (error) {
        if (error instanceof Refusal) return { refused: error.message }
        throw error
      }
    },
    run: async (name, input, signal, callContext) => {
      const tool = tools[name]!
      try {
        const meant = tool.check(asMeant(name, input, roots))
        const result = await tool.run(meant, {
          ...tree,
          signal,
          reach,
          references,
          ...parts,
          lineHashes,
          ...(known && { known }),
          ...(shorten && { shorten }),
          ...callContext,
          ...turnPrograms(wall, { root, cwd }, signal, listeners),
        })
        const { path } = tool.describe(meant)
        if (!diagnose || !result.ok || !REWRITES.has(name) || path === undefined) return result
        const errors = async () => {
          const text = textOf((await readFileAt(tree, path)).bytes)
          return text === undefined ? '' : diagnose(path, text, signal)
        }
        // The file is changed, whatever becomes of this.
        return { ...result, text: result.text + (await errors().catch(() => '')) }
      } catch (error) {
        if (!signal.aborted) throw error
        return { ok: false, text: 'stopped', content: [{ type: 'text', text: 'stopped' }] }
      }
    },
    stamp: path => stamp(tree, pathAsMeant(path, roots)),
    offered: async allowed => {
      const [asks, proposes, connects, pays, finds, browses, opens, processes] = await Promise.all(
        [
          ...[parts.needs, parts.approvals, parts.connecting, parts.paying],
          ...[parts.files, parts.browser, parts.terminal, parts.processes],
        ].map(each => each.served()),
      )
      const there: { readonly [name: string]: boolean | undefined } = {
        Skill: skills.length > 0,
        Need: asks,
        Withdraw: asks,
        Propose: proposes,
        Connect: connects,
        Pay: pays,
        Search: finds,
        Browser: browses,
        Handover: browses || opens,
        Process: processes,
      }
      const names = Object.entries(tools)
        .filter(([name]) => !allowed || allowed.includes(name))
        .filter(([name]) => there[name] !== false)
      const offered = names.map(([, tool]) => {
        const { name, description, input } = offeredSchema(tool, lineHashes)
        return { name, description, input: { ...input }, category: tool.category, readOnly: LOOKS.has(tool.category) }
      })
      return toolsFor(persona, offered)
    },
    walled: async program => {
      if (program.home !== undefined) listeners.starts?.()
      const own = program.ofTurn && (await listeners.ofCommands?.())
      const env = { ...listeners.env, ...own, ...program.env }
      const tree = ownPlace === undefined ? wall : { ...wall, copy: wall.copy && { ...wall.copy, alsoAt: ownPlace } }
      return { ...(await treeCommand(tree, root, cwd, { ...program, env }, listeners.begun)), agentFolders }
    },
    shared: async program => {
      listeners.starts?.()
      const env = { ...listeners.env, ...program.env }
      const found = await listeners.shared?.({ ...program, env })
      return found && { ...found, tree: { ...found.tree, agentFolders } }
    },
  }
}
