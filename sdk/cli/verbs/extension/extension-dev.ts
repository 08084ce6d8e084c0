import { setTimeout as later } from 'node:timers/promises'
import type { Client } from '../../../client.js'
import { unapprovedDigest } from '../../../refusal.js'
import { assertDone, failedOf, failuresOf } from '../../calls/failures.js'
import { connected } from '../../daemon/connection.js'
import { printResult } from '../../terminal/asked.js'
import { confirmed } from '../../terminal/confirm.js'
import { SELF } from '../../terminal/own-name.js'
import { oneLine, plain } from '../../terminal/text.js'
import { durationWords } from '../../terminal/values.js'
import { say, write } from '../../terminal/write.js'
import { EXIT, CommandFailure, type GivenArguments, type Terminal } from '../../verb.js'

const LOOK_MS = 500

type Run = (digest?: string) => Promise<{ readonly dev: { readonly revision: string } }>

/** Where an extension runs from, in words. */
const folderText = ({ path, conversation }: { readonly path: string; readonly conversation?: string }): string =>
  conversation === undefined ? path : `${path} in the private copy of ${conversation}`

/** Runs an extension from a folder of the workspace or of a private copy, and follows its builds and its log. */
export const developExtension = (
  terminal: Terminal,
  given: GivenArguments,
  id: string,
  path: string | undefined,
): Promise<number> =>
  connected(terminal, given, async ({ client }) => {
    const options = { signal: terminal.signal }
    if (given.on('end')) {
      const answer = await client.call('DELETE /extensions/{id}/dev', { id }, options)
      return printResult(terminal, given, answer, () => `${plain(id)} runs its commit ${answer.ref} again`)
    }
    const conversation = given.text('conversation')
    const from = { path: path!, ...(conversation !== undefined && { conversation }) }
    const begin: Run = digest =>
      client.call('POST /extensions/{id}/dev', { id, ...from, ...(digest && { digest }) }, options)
    const answer = await withApproval(terminal, given, begin)
    if (!answer) return EXIT.refused
    await printResult(terminal, given, answer, () => [
      `${plain(id)} runs from ${oneLine(folderText(from))}`,
      `next: ${SELF} extension dev ${plain(id)} --end goes back to its commit`,
    ])
    if (given.on('once')) {
      assertDone(failedOf(answer, await failuresOf(terminal, ['extensions', 'POST /extensions/{id}/dev']), SELF))
      return EXIT.ok
    }
    await Promise.all([followLog(terminal, client, id), followBuilds(terminal, given, client, id)])
    return EXIT.ok
  })

/** Does it, and where it adds powers shows these and asks. */
const withApproval = async (terminal: Terminal, given: GivenArguments, run: Run) => {
  try {
    return await run()
  } catch (error) {
    const digest = unapprovedDigest(error)
    if (digest === undefined) throw error
    say(terminal, `${oneLine((error as Error).message)}\n`)
    const yes = given.on('yes') || (await confirmed(terminal, given, 'approve this?', '--yes'))
    return yes ? run(digest) : undefined
  }
}

const followBuilds = async (terminal: Terminal, given: GivenArguments, client: Client, id: string): Promise<void> => {
  const options = { signal: terminal.signal }
  let told = ''
  for (;;) {
    await later(LOOK_MS, undefined, options)
    const { extensions } = await client.call('GET /extensions', undefined, options)
    const { dev } = extensions.find(each => each.id === id) ?? {}
    if (!dev) throw new CommandFailure(EXIT.refused, `${plain(id)} does not run from a folder any more`)
    const { held = '' } = dev
    if (held === 'rebuilt') {
      const began = performance.now()
      const reload: Run = digest =>
        client.call('POST /extensions/{id}/dev/reload', { id, ...(digest && { digest }) }, options)
      const line = await withApproval(terminal, given, reload).then(
        () => `loaded the new build in ${durationWords(performance.now() - began)}`,
        (error: Error) => `not loaded: ${oneLine(error.message)}`,
      )
      terminal.signal.throwIfAborted()
      if (line !== told || line.startsWith('loaded')) say(terminal, `${line}\n`)
      told = line
    } else if (held !== told) {
      told = held
      if (held !== '') say(terminal, `held: ${oneLine(held)}\n`)
    }
  }
}

/** Prints the log as it is written; it is there once something was. */
const followLog = async (terminal: Terminal, client: Client, id: string): Promise<void> => {
  const options = { signal: terminal.signal }
  const { files } = await client.call('GET /logs', { query: `extension-${id}` }, options)
  const name = files[0]?.name
  if (name === undefined) {
    await later(LOOK_MS * 4, undefined, options)
    return followLog(terminal, client, id)
  }
  for await (const event of await client.call('GET /logs/follow', { name }, options))
    if ('text' in event) await write(terminal, `${oneLine(event.text)}\n`)
}
