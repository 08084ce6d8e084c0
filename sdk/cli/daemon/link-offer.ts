import { access, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { plain } from '../terminal/text.js'
import { SELF } from '../terminal/own-name.js'
import { say, write } from '../terminal/write.js'
import type { Terminal } from '../verb.js'
import { stateRoot } from './daemon.js'
import { commandPath, makeCommand, pathHint } from './link.js'

/** Offers the command `sandbox` once, at a terminal where it does not work yet; returns without an answer on Ctrl-C. */
export const offerLink = async (terminal: Terminal): Promise<void> => {
  const offered = join(stateRoot(terminal.env), 'link-offered')
  if (SELF === 'sandbox' || !terminal.interactive || (await isThere(offered))) return
  const lines = createInterface({ input: terminal.in, output: terminal.out })
  // A terminal that readline reads gives it Ctrl-C as a key.
  lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  try {
    const question = `\nMake the command sandbox, in ${commandPath(terminal)}? It then works in every folder. [y/N] `
    const answer = await lines.question(question, { signal: terminal.signal })
    await mkdir(dirname(offered), { recursive: true, mode: 0o700 })
    await writeFile(offered, '')
    if (!/^y(es)?$/i.test(answer.trim())) return await write(terminal, `${SELF} link makes it later\n`)
    const { path, onPath } = await makeCommand(terminal)
    await write(terminal, `made ${plain(path)}${onPath ? ': type sandbox' : `; ${pathHint(path)}`}\n`)
  } catch (error) {
    if (!terminal.signal.aborted) say(terminal, `sandbox: ${plain((error as Error).message)}\n`)
  } finally {
    lines.close()
  }
}

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
