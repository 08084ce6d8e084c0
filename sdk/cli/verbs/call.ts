import type { Routed } from '../../client.js'
import { failuresOf } from '../calls/failures.js'
import { printAnswer } from '../calls/print.js'
import { connected } from '../daemon/connection.js'
import { inputText } from '../terminal/input.js'
import { SELF } from '../terminal/own-name.js'
import { CONNECTION, misused, type Terminal, type Verb } from '../verb.js'

/** Makes any call of the document. */
export const call: Verb = {
  name: 'call',
  usage: "'METHOD /path' [KEY=VALUE…]",
  summary: 'make one call of the published document',
  examples: [
    "call 'GET /info'",
    "call 'GET /agents/{id}/diff' id=c-1",
    "call 'POST /agents/{id}/rename' id=c-1 title=@title.txt",
  ],
  notes: [
    "KEY=VALUE gives a JSON value where VALUE is one, else text; KEY:=JSON must be JSON; KEY=@FILE gives a file's "
      + 'text, - for',
    'standard input: pass secrets there, because others on this machine can see arguments.',
    `Path parameters are keys too: ${SELF} call 'GET /agents/{id}/diff' id=c-1`,
    'A stream is printed as it comes, one event a line. The document is at /openapi.json, a page to read it at '
      + '/reference.',
  ],
  flags: CONNECTION,
  least: 1,
  most: Infinity,
  run: async (terminal, given) => {
    const [first = '', ...rest] = given.args
    const [name, pairs] =
      /^[A-Za-z]+$/.test(first) && rest[0]?.startsWith('/') ? [`${first} ${rest[0]}`, rest.slice(1)] : [first, rest]
    const [, method, path] =
      /^(get|post|put|patch|delete) (\/\S*)$/i.exec(name)
      ?? misused(`expected a call such as 'GET /agents', found ${name}`)
    const input = Object.fromEntries(await Promise.all(pairs.map(pair => pairOf(terminal, pair))))
    const asked = `${method!.toUpperCase()} ${path}`
    const failures = await failuresOf(terminal, [undefined, asked])
    return connected(terminal, given, async ({ client }) => {
      // Of any call: a stream that does something would do it again.
      const once = asked !== 'POST /agent/attach' && !asked.startsWith('GET ')
      const answer: unknown = await client.call(asked as Routed, input as never, { signal: terminal.signal, once })
      return printAnswer(terminal, given, answer, {
        lines: value => [JSON.stringify(value, undefined, 2)],
        failures,
      })
    })
  },
}

const pairOf = async (terminal: Terminal, pair: string): Promise<[key: string, value: unknown]> => {
  const [, key, form, text = ''] =
    /^([^=:]+)(:=|=@|=)(.*)$/s.exec(pair) ?? misused(`expected KEY=VALUE, KEY:=JSON or KEY=@FILE, found ${pair}`)
  if (form === '=@') return [key!, await inputText(terminal, text, key!)]
  try {
    return [key!, JSON.parse(text)]
  } catch {
    return [key!, form === '=' ? text : misused(`${key}: expected JSON, found ${text.slice(0, 80)}`)]
  }
}
