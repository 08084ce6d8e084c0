import { CONNECTION, EXIT, misused, type Verb } from '../../verb.js'

/** Serves an assistant elsewhere: it starts turns here and waits for them. */
export const mcpVerb: Verb = {
  name: 'mcp',
  usage: '',
  summary: 'serve an assistant that speaks the Model Context Protocol: it starts turns, answers, reviews and lands',
  examples: ['mcp', 'mcp --url http://127.0.0.1:8787 --token-file ~/.sandbox-token'],
  notes: [
    'Assistants start it; it speaks the protocol on standard input and output until the input ends. Turns go on then.',
    'It does what its credential may: on this machine all, with a control token what the scope of the token reaches.',
  ],
  flags: Object.fromEntries(Object.entries(CONNECTION).filter(([name]) => name !== 'json')),
  most: 0,
  run: async (terminal, given) => {
    if (given.text('token-file') === '-')
      misused('--token-file: expected a file, found -: the assistant speaks on standard input')
    const { serveAssistant } = await import('./serve-assistant.js')
    await serveAssistant(terminal, given)
    return EXIT.ok
  },
}
