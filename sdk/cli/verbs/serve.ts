import { ended, startDaemonProcess } from '../daemon/daemon-process.js'
import { startSample } from '../daemon/sample.js'
import type { Flag, GivenArguments, Verb } from '../verb.js'

/** The options of a daemon. */
export const SERVE: { readonly [name: string]: Flag } = {
  workspace: { value: 'DIR', help: 'the folder to serve; default: the current one (SANDBOX_WORKSPACE)' },
  data: { value: 'DIR', help: 'the data folder, outside the workspace (SANDBOX_DATA)' },
  host: { value: 'HOST', help: 'the address to listen on; default: 127.0.0.1 (SANDBOX_HOST)' },
  port: { value: 'PORT', help: 'the port; default: 8787; 0 picks a free one (SANDBOX_PORT)' },
  'preview-port': {
    value: 'PORT',
    help: 'the port of previews; default: the one after --port, or a free one (SANDBOX_PREVIEW_PORT)',
  },
  store: { value: 'URL', help: 'the document store; default: a file in the data folder (SANDBOX_STORE)' },
  'public-url': {
    value: 'URL',
    help: 'the address in sign-in links and invitations; default: the address it listens on ' + '(SANDBOX_PUBLIC_URL)',
  },
  config: { value: 'FILE', help: "the deployment's own settings (SANDBOX_CONFIG)" },
  'no-wall': { help: 'start also where turns would run without a wall (SANDBOX_NO_WALL)' },
}

/** Runs a daemon in the foreground. */
export const serve: Verb = {
  name: 'serve',
  usage: '',
  summary: 'run a daemon on a folder',
  examples: ['serve', 'serve --workspace ~/code --port 0', 'serve --sample'],
  notes: [
    'SIGTERM and Ctrl-C stop it cleanly. With --sample and no workspace named, it runs on a sample workspace and '
      + 'shows one turn there.',
  ],
  flags: {
    ...SERVE,
    json: { help: 'one JSON line when ready, JSON logs on standard error' },
    sample: { help: 'show the daemon at work on a sample workspace' },
  },
  most: 0,
  run: async (terminal, given) => {
    const sample = given.on('sample') && !given.text('workspace') && !terminal.env.SANDBOX_WORKSPACE
    if (sample) return startSample(terminal, passed(given))
    const child = startDaemonProcess(terminal, [...passed(given), ...(given.on('json') ? ['--json'] : [])], 'inherit')
    return ended(child, terminal)
  },
}

const passed = (given: GivenArguments): string[] =>
  Object.keys(SERVE).flatMap(name =>
    given.on(name) ? [`--${name}`] : given.text(name) === undefined ? [] : [`--${name}=${given.text(name)}`],
  )
