import type { OriginAgents, UncommittedChanges } from '../../../git/contract.js'

type Landed = Pick<UncommittedChanges, 'origins'>

/** The conversation that landed a path last: its title, or its id. */
export const landerOf = ({ origins = {} }: Landed, agents: OriginAgents, path: string): string | undefined => {
  // A file may have the name of something that every object has.
  const [id] = Object.hasOwn(origins, path) ? origins[path]! : []
  return id === undefined ? undefined : (agents[id]?.title ?? id)
}

/** The messages drafted for what landed, each once. */
export const draftsFor = ({ origins = {} }: Landed, agents: OriginAgents): string[] => [
  ...new Set(Object.values(origins).flatMap(ids => ids.flatMap(id => agents[id]?.landedMessage?.subject ?? []))),
]
