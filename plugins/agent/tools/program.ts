import type { ToolResult } from '../providers/adapter.js'
import { cut, textContent } from './content.js'
import type { ShellResult } from './tool.js'

const MOST_RESULT = 256 * 1024

/** The result of a program: its output, with the exit code or timeout if it failed. */
export const endedProgram = ({ exit, output, timedOut }: ShellResult, timeoutMs: number): ToolResult => {
  const note = timedOut ? `[ended after ${timeoutMs} ms]` : exit === 0 ? '' : `[exit ${exit}]`
  const ending = note && `${output === '' || output.endsWith('\n') ? '' : '\n'}${note}`
  const ok = exit === 0 && !timedOut
  return { ok, exit, text: cut(output, MOST_RESULT) + ending, content: textContent(output + ending) }
}
