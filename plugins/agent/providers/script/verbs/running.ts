import { malformed, needed } from '../argument.js'
import type { ScriptContext, ScriptFrames } from '../context.js'
import { chomp, kept } from '../texts.js'
import type { ToolUse } from '../use.js'
import { type ScriptVerb, verb } from '../verb.js'

/** Does something once, whatever restarts: `$out` and `$exit` tell what became of it. */
async function* ran(script: ScriptContext, use: ToolUse): ScriptFrames {
  const { ok, text, exit } = yield* script.call({ ...use, once: true })
  script.note({ out: kept(chomp(text)), exit: String(exit ?? (ok ? 0 : 1)) })
}

/** Programs and the network. */
export const running: { readonly [name: string]: ScriptVerb } = {
  run: verb<{ readonly command: string }>({
    form: 'run COMMAND',
    help: 'runs it in the shell; $exit and $out',
    lineless: true,
    read: ({ text }) => ({ command: needed('run COMMAND', text) }),
    run: (input, script) => {
      const command = script.text(input.command)
      return ran(script, { name: 'Shell', category: 'execute', target: command, input: { command } })
    },
  }),
  code: verb<{ readonly source: string }>({
    form: 'code',
    help: 'runs the | lines below as JavaScript; $exit and $out',
    read: ({ text, lines }) => {
      if (text !== '') malformed('code alone on its line, and below it lines that begin with |', `code ${text}`)
      return { source: needed('code, and below it lines that begin with |', lines.join('\n')) }
    },
    run: (input, script) => {
      const source = script.text(input.source)
      return ran(script, { name: 'Code', category: 'execute', target: source, input: { source } })
    },
  }),
  fetch: verb<{ readonly url: string }>({
    form: 'fetch URL',
    help: 'gets a page of the web; $out is its text, $exit is 0 or 1',
    lineless: true,
    read: ({ text }) => ({ url: needed('fetch URL', text) }),
    run: (input, script) => {
      const url = script.text(input.url)
      return ran(script, { name: 'Fetch', category: 'fetch', target: url, input: { url } })
    },
  }),
  browse: verb<{ readonly url: string }>({
    form: 'browse URL',
    help: 'opens a page in the browser; $out is its text, $exit is 0 or 1',
    lineless: true,
    read: ({ text }) => ({ url: /^\S+$/.test(text) ? text : malformed('browse URL', text) }),
    run: (input, script) => {
      const url = script.text(input.url)
      return ran(script, { name: 'Browser', category: 'execute', target: url, input: { action: 'open', url } })
    },
  }),
}
