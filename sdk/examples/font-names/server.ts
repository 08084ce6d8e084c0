// Says what a font names itself, its version and its licence, so that its page, search and comparisons show them.
import type { ExtensionHost } from 'sandbox-daemon/sdk'

const SHOWN: readonly (readonly [nameId: number, title: string])[] = [
  [1, 'Family'],
  [2, 'Style'],
  [5, 'Version'],
  [8, 'Manufacturer'],
  [0, 'Copyright'],
  [13, 'Licence'],
]
const WINDOWS = 3
const RECORD = 12

/** The texts of a font by their number, as its table `name` has them for Windows. */
const namesIn = (bytes: Uint8Array): Map<number, string> => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const tables = Array.from({ length: view.getUint16(4) }, (_, at) => 12 + 16 * at)
  const entry = tables.find(at => new TextDecoder().decode(bytes.subarray(at, at + 4)) === 'name')
  if (entry === undefined) throw new Error('it is no font, or has no names')
  const table = view.getUint32(entry + 8)
  const texts = table + view.getUint16(table + 4)
  const names = new Map<number, string>()
  for (let at = table + 6, left = view.getUint16(table + 2); left > 0; at += RECORD, left -= 1) {
    if (view.getUint16(at) !== WINDOWS) continue
    const start = texts + view.getUint16(at + 10)
    const text = bytes.subarray(start, start + view.getUint16(at + 8))
    names.set(view.getUint16(at + 6), new TextDecoder('utf-16be').decode(text))
  }
  return names
}

export const activate = (host: ExtensionHost): void => {
  host.documents.handle('fonts', ({ name, bytes }) => {
    const names = namesIn(bytes)
    const lines = SHOWN.flatMap(([id, title]) => (names.has(id) ? [`- ${title}: ${names.get(id)}`] : []))
    return { title: names.get(4) ?? name, markdown: lines.join('\n') }
  })
}
