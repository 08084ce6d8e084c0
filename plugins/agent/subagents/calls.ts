import type { Handlers } from '../../../sdk/index.js'
import type { SubagentArchive } from './archive.js'
import type { SubagentCalls } from './contract.js'

/** Serves what subagents did. */
export const subagentCalls = (archive: SubagentArchive): Handlers<SubagentCalls> => ({
  'agent.helpers': query => archive.list(query),
  'agent.helperTranscript': ({ id }) => archive.transcript(id),
})
