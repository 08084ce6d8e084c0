import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { BrowserAct, BrowserCapture } from '../../../plugins/system/contract.js'
import type { Client } from '../../client.js'
import { askedAs, wordsAs } from '../calls/asked-as.js'
import { asked } from '../terminal/asked.js'
import { connected } from '../daemon/connection.js'
import { jsonLine, oneLine, plain } from '../terminal/text.js'
import { CONNECTION, EXIT, type GivenArguments, misused, type Terminal, type Verb } from '../verb.js'
import { write } from '../terminal/write.js'

const GOES = ['back', 'forward', 'reload'] as const
const LIST = ['system', 'browsers'] as const
const USAGE = '[list | open NAME URL | goto NAME URL | back|forward|reload NAME | capture NAME | close NAME]'

/** Lists, opens and closes browsers, navigates their pages, and captures what they show. */
export const browser: Verb = {
  name: 'browser',
  also: 'browsers',
  usage: USAGE,
  summary: 'show, open and close browsers',
  examples: ['browser', 'browser open web-1 http://localhost:3000', 'browser close web-1'],
  notes: [
    'NAME is a name from the list; open starts a browser under a new name web-….',
    'capture prints the visible text, and with --out saves the picture.',
  ],
  ids: { NAME: ['system', 'browsers'] },
  flags: {
    page: { value: 'ID', help: 'the page to use; default: the active one' },
    out: { value: 'FILE', help: 'with capture: write the picture (WebP) to this file' },
    ...CONNECTION,
  },
  most: 3,
  run: (terminal, given) => {
    const [what = 'list', name, url, ...more] = given.args
    const wrong = () => misused(`expected browser ${USAGE}, found browser ${given.args.join(' ')}`)
    if (what === 'list') {
      if (name !== undefined) return wrong()
      return askedAs(terminal, given, LIST, (client, options) =>
        client.call('GET /system/browsers', undefined, options),
      )
    }
    if (name === undefined || more.length > 0) return wrong()
    if (what === 'close' && url === undefined) {
      return asked(
        terminal,
        given,
        (client, options) => client.call('DELETE /system/browsers/{name}', { name }, options),
        () => `closed ${oneLine(name)}`,
      )
    }
    const action = actionOf(what, url) ?? wrong()
    const pageId = given.text('page')
    const act = { name, action, ...(pageId !== undefined && { pageId }), ...(url !== undefined && { url }) }
    return connected(terminal, given, ({ client }) => done(terminal, given, client, act))
  },
}

const actionOf = (what: string, url: string | undefined): BrowserAct['action'] | undefined =>
  url === undefined
    ? [...GOES, 'capture' as const].find(known => known === what)
    : (['open', 'goto'] as const).find(known => known === what)

const done = async (terminal: Terminal, given: GivenArguments, client: Client, act: BrowserAct): Promise<number> => {
  const { session, capture } = await client.call('POST /system/browsers/{name}/page', act, { signal: terminal.signal })
  const out = given.text('out')
  if (capture && out !== undefined) await writeFile(resolve(terminal.cwd, out), Buffer.from(capture.data, 'base64'))
  if (given.on('json'))
    await write(
      terminal,
      jsonLine(
        capture && out !== undefined
          ? { session, capture: { ...capture, data: '' } }
          : { session, ...(capture && { capture }) },
      ),
    )
  else if (capture) await write(terminal, textOf(capture))
  else {
    const words = await wordsAs(terminal, LIST)
    await write(terminal, `${words({ sessions: [session] }, terminal.width).join('\n')}\n`)
  }
  return EXIT.ok
}

const textOf = ({ text, truncated }: BrowserCapture): string =>
  `${text.split('\n').map(plain).join('\n')}\n${truncated ? '(there is more text)\n' : ''}`
