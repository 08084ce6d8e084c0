import { ignored } from '../../../../sdk/index.js'
const MOST_LINE = 4000

/** Gives the lines of a stream, each cut; a line without an end is not kept for longer than that. */
export const eachLine = (stream: NodeJS.ReadableStream, take: (line: string) => void): void => {
  let rest = ''
  stream.setEncoding('utf8')
  stream.on('data', (text: string) => {
    const all = (rest + text).split('\n')
    rest = all.pop()!.slice(0, MOST_LINE)
    for (const line of all) if (line) take(line.slice(0, MOST_LINE))
  })
  stream.on('end', () => {
    if (rest) take(rest)
  })
  stream.on('error', ignored('its end follows'))
}
