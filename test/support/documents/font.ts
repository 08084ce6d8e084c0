/** The beginning of a font with these names by their number. */
export const font = (names: { readonly [nameId: number]: string }): Buffer => {
  const texts = Object.entries(names).map(([id, text]) => ({
    id: Number(id),
    bytes: Buffer.from(text, 'utf16le').swap16(),
  }))
  const [header, table] = [28, 6 + 12 * texts.length]
  const font = Buffer.alloc(header + table)
  font.writeUInt32BE(0x00010000, 0)
  font.writeUInt16BE(1, 4)
  font.write('name', 12)
  font.writeUInt32BE(header, 20)
  font.writeUInt16BE(texts.length, header + 2)
  font.writeUInt16BE(table, header + 4)
  let offset = 0
  for (const [at, { id, bytes }] of texts.entries()) {
    const record = [3, 1, 0x409, id, bytes.length, offset]
    record.forEach((value, field) => font.writeUInt16BE(value, header + 6 + 12 * at + 2 * field))
    offset += bytes.length
  }
  return Buffer.concat([font, ...texts.map(({ bytes }) => bytes)])
}
