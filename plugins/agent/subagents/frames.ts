import type { Frame } from '../turn/frames/frames.js'

/** The id of a subagent's own call in its run, unique among the agents of the run. */
export const callOf = (helper: string, id: string): string => `${helper}:${id}`

/** Whether a call or a subagent was started by this subagent, or by one that it started. */
export const isUnder = (helper: string, id: string): boolean => id.startsWith(`${helper}:`)

/** A card of a subagent, by its id. */
export const isSubagentCard = (requestId: string): boolean => /\.h\d+$/.test(requestId)

/**
 * Converts a frame of a subagent's provider for the log of the run.
 *
 * Frames about the whole turn (its session, model, list, mode, error) are left out.
 */
export const underSubagent = (frame: Frame, helper: string): Frame | undefined => {
  switch (frame.kind) {
    case 'delta':
    case 'text_end':
    case 'thinking':
      return { ...frame, parentToolUseId: helper }
    case 'tool_call':
      return { ...frame, id: callOf(helper, frame.id), parentToolUseId: helper }
    case 'tool_call_update':
      return { ...frame, id: callOf(helper, frame.id) }
    case 'notice':
      return frame
    default:
      return undefined
  }
}

/** The frames of a run without those of its subagents. */
export const ownFrames = (frames: readonly Frame[]): Frame[] => {
  const foreign = new Set<string>()
  return frames.filter(frame => {
    if (frame.kind === 'tool_call' && frame.parentToolUseId !== undefined) foreign.add(frame.id)
    if ('parentToolUseId' in frame && frame.parentToolUseId !== undefined) return false
    if ('requestId' in frame) return !isSubagentCard(frame.requestId)
    if (frame.kind === 'tool_call_update') return !foreign.has(frame.id)
    return !(frame.kind === 'usage' && frame.subagent !== undefined)
  })
}
