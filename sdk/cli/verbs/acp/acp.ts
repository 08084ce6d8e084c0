import { CONNECTION, EXIT, misused, type Verb } from '../../verb.js'

/** Serves an editor: its sessions are conversations of the daemon. */
export const acpVerb: Verb = {
  name: 'acp',
  usage: '',
  summary: 'serve an editor that speaks the Agent Client Protocol; its sessions are conversations',
  examples: ['acp', 'acp --url http://127.0.0.1:8787 --token-file ~/.sandbox-token'],
  notes: [
    'Editors start it; it speaks the protocol on standard input and output until the input ends. Turns go on then, and '
      + 'sessions can be opened again, also in another editor or the console.',
    'The daemon is the one whose workspace contains the folder of the session. Work is in a private copy: /diff shows '
      + 'it, /land brings it into the workspace, /discard drops it.',
  ],
  flags: Object.fromEntries(Object.entries(CONNECTION).filter(([name]) => name !== 'json')),
  most: 0,
  run: async (terminal, given) => {
    if (given.text('token-file') === '-')
      misused('--token-file: expected a file, found -: the editor speaks on standard input')
    const { serveEditor } = await import('./serve-editor.js')
    await serveEditor(terminal, given)
    return EXIT.ok
  },
}
