import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { ServerOrder } from './shown-server.js'

/** The program of the servers. */
export const SHOWN_SERVER = fileURLToPath(new URL('shown-server.js', import.meta.url))

/** A process with servers; it ends with the test. */
export interface ShownServers {
  readonly pid: number
  /** Opens a server, or closes one; resolves with its port. */
  ask(order: ServerOrder): Promise<number>
  end(): Promise<void>
}

/** Starts a process with servers in a folder. */
export const shownServers = (t: Pick<Test, 'teardown'>, cwd: string, args: readonly string[] = []): ShownServers => {
  const child = spawn(process.execPath, [SHOWN_SERVER, ...args], { cwd, stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const end = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  t.teardown(end)
  return {
    pid: child.pid!,
    ask: async order => {
      child.stdin.write(`${JSON.stringify(order)}\n`)
      const { value } = (await lines.next()) as { value: string }
      if (!/^\d+$/.test(value)) throw new Error(value)
      return Number(value)
    },
    end,
  }
}
