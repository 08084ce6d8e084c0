import type { Tool } from '@modelcontextprotocol/client'
import { hash } from 'node:crypto'
import type { ShownConfig } from '../records/contract.js'
import { approves, withheld } from './config.js'
import type { McpTool } from './contract.js'

const MOST_TOOLS = 500
const MOST_NAME = 128
const MOST_DESCRIPTION = 8000
const MOST_SCHEMA = 64 * 1024
/** What models accept as the name of a tool. */
const MOST_AGENT_NAME = 64

/** A tool as its server declares it, cut to what is passed on. */
export interface ServerTool {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly input: { readonly [keyword: string]: unknown }
  readonly readOnlyHint: boolean
  readonly destructive: boolean
  /** Why it cannot be offered, whatever the filters say. */
  readonly unfit?: string
}

/** The tools of a list, cut to what is passed on. */
export const serverTools = (tools: readonly Tool[]): ServerTool[] => {
  const seen = new Set<string>()
  return tools.slice(0, MOST_TOOLS).flatMap(({ name, title, description = '', inputSchema, annotations = {} }) => {
    if (seen.has(name)) return []
    seen.add(name)
    const shown = title ?? annotations.title
    const readOnlyHint = annotations.readOnlyHint === true
    const unfit =
      name.length > MOST_NAME || !/^[\x21-\x7e]+$/.test(name)
        ? `its name has more than ${MOST_NAME} characters, or blanks and signs that are not plain`
        : JSON.stringify(inputSchema).length > MOST_SCHEMA
          ? `the schema of its input has more than ${MOST_SCHEMA} characters`
          : undefined
    return [
      {
        name: name.slice(0, MOST_NAME).toWellFormed(),
        ...(shown && { title: shown.slice(0, 200).toWellFormed() }),
        description: description.slice(0, MOST_DESCRIPTION).toWellFormed(),
        input: unfit === undefined ? (inputSchema as ServerTool['input']) : { type: 'object' },
        readOnlyHint,
        destructive: !readOnlyHint && annotations.destructiveHint !== false,
        ...(unfit !== undefined && { unfit }),
      },
    ]
  })
}

/** What changes when a tool means something else. */
export const toolDigestOf = ({ description, input, title }: ServerTool): string =>
  hash('sha256', JSON.stringify([title, description, input]), 'base64url')

const shortHash = (text: string): string => hash('sha256', text, 'hex').slice(0, 8)

/** A name for the model; `taken` are those of the other tools of the turn. */
export const agentNameOf = (server: string, name: string, taken: ReadonlySet<string> = new Set()): string => {
  const plain = `${server}__${name}`.replace(/[^A-Za-z0-9_-]/g, '_')
  if (plain.length <= MOST_AGENT_NAME && !taken.has(plain)) return plain
  const mark = `_${shortHash(`${server}\n${name}`)}`
  return plain.slice(0, MOST_AGENT_NAME - mark.length) + mark
}

/** The tools of a server as maintainers see them; `trusted` are those whose hint of reading only is believed. */
export const mcpTools = (
  id: string,
  config: ShownConfig,
  tools: readonly ServerTool[],
  trusted: ReadonlySet<string>,
): McpTool[] => {
  const taken = new Set<string>()
  return tools.map(({ name, title, description, input, readOnlyHint, destructive, unfit }) => {
    const agentName = agentNameOf(id, name, taken)
    taken.add(agentName)
    const readOnly = readOnlyHint && trusted.has(name)
    const why = unfit ?? withheld(config, name)
    return {
      name,
      agentName,
      ...(title !== undefined && { title }),
      description,
      input: { ...input },
      readOnly,
      destructive,
      offered: why === undefined,
      ...(why !== undefined && { withheld: why }),
      approve: approves(config, readOnly),
    }
  })
}
