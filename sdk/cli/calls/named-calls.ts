import { SELF } from '../terminal/own-name.js'
import type { Terminal } from '../verb.js'
import { groupsOf, tableOf } from './tables.js'

const CALL = /\b(?:GET|POST|PUT|PATCH|DELETE) \/[\w{}/-]+/g

/** A sentence of the daemon in which calls that have a verb are named by it, as a person types it. */
export const withVerbs = async (terminal: Pick<Terminal, 'root'>, sentence: string): Promise<string> => {
  const calls = sentence.match(CALL)
  if (!calls) return sentence
  const tables = await Promise.all(
    groupsOf(terminal).map(async group => [group, await tableOf(terminal, group)] as const),
  )
  return sentence.replace(CALL, call => {
    for (const [group, table] of tables)
      for (const [name, verb] of Object.entries(table?.verbs ?? {}))
        if (verb.call === call) return `${SELF} ${group} ${name}`
    return call
  })
}
