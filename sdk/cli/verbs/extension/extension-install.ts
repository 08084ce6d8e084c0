import { assertDone, failedOf, failuresOf } from '../../calls/failures.js'
import { connected } from '../../daemon/connection.js'
import { printResult } from '../../terminal/asked.js'
import { confirmed } from '../../terminal/confirm.js'
import { SELF } from '../../terminal/own-name.js'
import { counted, oneLine, plain } from '../../terminal/text.js'
import { say } from '../../terminal/write.js'
import { EXIT, misused, type GivenArguments, type Terminal } from '../../verb.js'

const agreedTo = async (
  terminal: Terminal,
  given: GivenArguments,
  lines: readonly string[],
  question: string,
): Promise<boolean> => {
  if (given.on('yes')) return true
  say(terminal, `${lines.join('\n')}\n`)
  return confirmed(terminal, given, question, '--yes')
}

/** Shows what installing a commit approves, asks, and installs it. */
export const installFrom = (terminal: Terminal, given: GivenArguments, url: string, ref: string): Promise<number> => {
  if (!/^[0-9a-f]{40}$/.test(ref))
    return misused(`expected a commit of 40 hexadecimal digits, found ${plain(ref)}: git rev-parse shows it`)
  const [path, secret, registry] = ['path', 'secret', 'registry'].map(flag => given.text(flag))
  const source = { url, ref, ...(path && { path }), ...(secret && { secret }), ...(registry && { registry }) }
  return connected(terminal, given, async ({ client }) => {
    const options = { signal: terminal.signal }
    const shown = await client.call('POST /extensions/install/preview', source, options)
    const { id, manifest, powers, trust, trustReason, problems, size, digest } = shown
    const lines = [
      `${plain(id)} ${plain(manifest.version ?? '0.0.0')}, ${counted(size.files, 'file')}, ${trust}`
        + (trustReason === undefined ? '' : `: ${oneLine(trustReason)}`),
      ...(powers.length > 0 ? powers.map(text => `- ${oneLine(text)}`) : ['asks for nothing']),
      ...problems.map(problem => `problem: ${oneLine(problem)}`),
    ]
    if (!(await agreedTo(terminal, given, lines, 'install it?'))) return EXIT.refused
    for await (const event of await client.call('POST /extensions/install', { ...source, digest }, options)) {
      if (event.kind === 'log') say(terminal, `${oneLine(event.message)}\n`)
      else {
        const code = await printResult(terminal, given, event, () => [
          `installed ${plain(event.id)}${event.backend ? `, backend ${event.backend.state}` : ''}`,
        ])
        assertDone(failedOf(event, await failuresOf(terminal, ['extensions', 'POST /extensions/install']), SELF))
        return code
      }
    }
    return EXIT.failed
  })
}

/** Shows what an update changes, asks where it adds powers, and applies it. */
export const updateTo = (
  terminal: Terminal,
  given: GivenArguments,
  id: string,
  ref: string | undefined,
): Promise<number> =>
  connected(terminal, given, async ({ client }) => {
    const options = { signal: terminal.signal }
    const wanted = { id, ...(ref !== undefined && { ref }) }
    const shown = await client.call('POST /extensions/{id}/update/preview', wanted, options)
    const { powers, changed, installedVersion, version, digest } = shown
    const lines = [
      `${plain(id)} ${plain(installedVersion)} to ${plain(version)}: ${counted(changed.files, 'file')}, `
        + `${counted(changed.insertions, 'line')} added, ${changed.deletions} removed`,
      ...powers.added.map(text => `+ ${oneLine(text)}`),
      ...powers.removed.map(text => `no longer: ${oneLine(text)}`),
    ]
    if (powers.added.length > 0 && !(await agreedTo(terminal, given, lines, 'update it?'))) return EXIT.refused
    const answer = await client.call('POST /extensions/{id}/update', { id, ref: shown.ref, digest }, options)
    return printResult(terminal, given, answer, () => [
      ...(powers.added.length > 0 && !given.on('yes') ? [] : lines),
      `${plain(id)} is at ${answer.ref}`,
      `next: ${SELF} extension revert ${plain(id)} takes it back`,
    ])
  })

/** Shows what a removal deletes, asks, and removes it. */
export const removeWhole = (terminal: Terminal, given: GivenArguments, id: string): Promise<number> =>
  connected(terminal, given, async ({ client }) => {
    const options = { signal: terminal.signal }
    const plan = await client.call('GET /extensions/{id}/removal', { id }, options)
    const lines = [
      `removing ${plain(id)} deletes:`,
      ...plan.files.map(({ path, detail }) => `- ${oneLine(path)}: ${oneLine(detail)}`),
      ...plan.settings.map(({ key, secret }) => `- the ${secret ? 'secret ' : ''}setting ${oneLine(key)}`),
      ...plan.keeps.map(each => `${oneLine(each)}`),
    ]
    if (!(await agreedTo(terminal, given, lines, 'remove it?'))) return EXIT.refused
    const answer = await client.call('POST /extensions/{id}/remove', { id }, options)
    return printResult(terminal, given, answer, () => `removed ${plain(id)}`)
  })
