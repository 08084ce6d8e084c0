import type { McpServer } from '@agentclientprotocol/sdk'
import { programFile } from '../../../sdk/node/programs/package.js'

/** Programs have their own tools for files, commands and plans. */
const THEIRS = new Set([
  ...['Read', 'List', 'Search', 'Write', 'Append', 'Edit', 'Delete', 'Move'],
  ...['Shell', 'Process', 'Code', 'Plan'],
])
/** The names by which programs offer a tool of the server `sandbox` to their model. */
const NAMED = /^(?:mcp__)?sandbox(?:__|[_./:-])(\w+)/

/** Whether a program gets this tool of the sandbox. */
export const isServed = (name: string): boolean => !THEIRS.has(name)

/** The sandbox tool that a program calls by this name; the sandbox itself produces its frames and its card. */
export const servedBy = (name: string): string | undefined => NAMED.exec(name)?.[1]

/** Describes the daemon's tool server to a program: by its address, or as a command that the program starts. */
export const toolServerOf = (url: string, token: string, overHttp: boolean): McpServer =>
  overHttp
    ? { type: 'http', name: 'sandbox', url, headers: [{ name: 'authorization', value: `Bearer ${token}` }] }
    : {
        name: 'sandbox',
        command: process.execPath,
        args: [programFile('plugins/agent/tool-server/bridge.js')],
        env: [
          { name: 'SANDBOX_TOOLS_URL', value: url },
          { name: 'SANDBOX_TOOLS_TOKEN', value: token },
        ],
      }
