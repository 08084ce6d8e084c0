import { pino, type Logger } from 'pino'
import type { StructuredLine } from '../../sdk/log-line.js'
import { inWords, safeLine } from '../../sdk/node/logs/line.js'

export type { Logger }

type Write = (line: string) => void

/**
 * The daemon's log: JSON lines if `json`, otherwise warnings and errors as text. `keep` receives every line as JSON.
 */
export const createLog = (
  json: boolean,
  write: Write = line => void process.stderr.write(line),
  keep?: Write,
): Logger =>
  pino(
    {
      level: json || keep ? 'info' : 'warn',
      base: { pid: process.pid },
      messageKey: 'message' satisfies keyof StructuredLine,
      timestamp: () => `,"at":${Date.now()}`,
      formatters: { level: level => ({ level }) },
    },
    {
      write: line => {
        const safe = safeLine(line)
        keep?.(safe)
        write(json ? safe : inWords(safe))
      },
    },
  )
