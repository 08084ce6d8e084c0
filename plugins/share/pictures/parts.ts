/** The file is no whole picture of its type. */
export class BrokenPicture extends Error {}

/** Bytes of a picture; refuses a part that ends after the file. */
export const partAt = (bytes: Buffer, from: number, length: number): Buffer => {
  if (length < 0 || from + length > bytes.length) throw new BrokenPicture('the picture ends before it is complete')
  return bytes.subarray(from, from + length)
}
