import type { AgentCard, AgentStatus } from '../../../agents/contract.js'

const WORDS: { readonly [status in AgentStatus]: readonly [tone: string, word: string] } = {
  idle: ['', 'Idle'],
  running: ['busy', 'Working'],
  awaiting: ['warn', 'Asks you'],
  stopping: ['busy', 'Stopping'],
  stopped: ['', 'Stopped'],
  resuming: ['busy', 'Resuming'],
  ready: ['good', 'Ready to land'],
  landed: ['', 'Landed'],
  conflict: ['bad', 'Conflict'],
  error: ['bad', 'Failed'],
  interrupted: ['bad', 'Interrupted'],
}

/** The status of a conversation, as a coloured word. */
export const StatusTag = ({ status }: Pick<AgentCard, 'status'>) => {
  const [tone, word] = WORDS[status] ?? ['', status]
  return <span class={`tag ${tone}`}>{word}</span>
}

/** The title of a conversation. */
export const cardTitle = ({ title, id }: Pick<AgentCard, 'title' | 'id'>): string => title || id
