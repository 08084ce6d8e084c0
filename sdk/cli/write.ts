import type { Terminal } from './verb.js'

/** Writes, and waits while the far side of a pipe does not read. */
export const write = (terminal: Pick<Terminal, 'out' | 'signal'>, text: string): Promise<void> =>
  new Promise(resolve => {
    if (!text || terminal.out.write(text)) return resolve()
    const go = () => {
      terminal.out.off('drain', go)
      terminal.signal.removeEventListener('abort', go)
      resolve()
    }
    terminal.out.on('drain', go)
    terminal.signal.addEventListener('abort', go)
  })
