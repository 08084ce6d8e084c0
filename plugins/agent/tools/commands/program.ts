import type { ToolResult } from '../../providers/adapter.js'
import { textContent } from '../content.js'
import type { ShellResult, ToolContext } from '../tool.js'

/**
 * The result of a program: its output, with the exit code or timeout if it failed. People see all of it, the model what
 * shortening leaves.
 */
export const endedProgram = async (
  { exit, output, timedOut }: ShellResult,
  { timeoutMs, command, shorten }: Pick<ToolContext, 'shorten'> & { timeoutMs: number; command?: string },
): Promise<ToolResult> => {
  const note = timedOut ? `[ended after ${timeoutMs} ms]` : exit === 0 ? '' : `[exit ${exit}]`
  const ended = (text: string) => note && `${text === '' || text.endsWith('\n') ? '' : '\n'}${note}`
  const ok = exit === 0 && !timedOut
  const { text: read, whole } = shorten
    ? await shorten({ output, ...(command !== undefined && { command }) })
    : { text: output }
  const content = textContent(output + ended(output))
  return { ok, exit, text: read + ended(read), content, ...(whole !== undefined && { whole }) }
}
