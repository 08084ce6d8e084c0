import { makeCommand, pathHint } from '../daemon/link.js'
import { printResult } from '../terminal/asked.js'
import { oneLine } from '../terminal/text.js'
import type { Verb } from '../verb.js'

/** Puts the command `sandbox` where a person's shell finds it. */
export const link: Verb = {
  name: 'link',
  usage: '',
  summary: 'make the command sandbox in ~/.local/bin, so that it works in every folder',
  examples: ['link'],
  notes: ['It starts this program with the Node that runs it now. Run it again after the program moved.'],
  flags: { json: { help: 'print JSON, one value a line' } },
  most: 0,
  run: async (terminal, given) =>
    printResult(terminal, given, await makeCommand(terminal), ({ path, changed, onPath }) => [
      `${changed ? 'made' : 'it is there already:'} ${oneLine(path)}`,
      ...(onPath ? [] : [pathHint(path)]),
    ]),
}
