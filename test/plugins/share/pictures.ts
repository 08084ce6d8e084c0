/** A JPEG of 8 × 8 grey pixels, as an encoder wrote it. */
const GREY = [
  '/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgKCgkICQkKDA8MCgsOCwkJDRENDg8Q',
  'EBEQCgwSExIQEw8QEBD/wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAACf/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAI',
  'AQEAAD8AVN//2Q==',
].join('')

const segment = (marker: number, bytes: Buffer): Buffer => {
  const head = Buffer.from([0xff, marker, 0, 0])
  head.writeUInt16BE(bytes.length + 2, 2)
  return Buffer.concat([head, bytes])
}

/** The tags of Exif: turned by a quarter, and a place. */
const exif = (): Buffer => {
  const tiff = Buffer.alloc(8 + 2 + 24 + 4)
  tiff.write('II*\0', 'latin1')
  tiff.writeUInt32LE(8, 4)
  tiff.writeUInt16LE(2, 8)
  tiff.writeUInt16LE(0x112, 10)
  tiff.writeUInt16LE(3, 12)
  tiff.writeUInt32LE(1, 14)
  tiff.writeUInt16LE(6, 18)
  tiff.writeUInt16LE(0x8825, 22)
  tiff.writeUInt16LE(4, 24)
  tiff.writeUInt32LE(1, 26)
  tiff.writeUInt32LE(34, 30)
  return Buffer.concat([Buffer.from('Exif\0\0', 'latin1'), tiff, Buffer.from('GPS-SECRET 51.5 N')])
}

/** A photo that says where it was made, in every place where a JPEG can. */
export const jpegWithGps = (): Buffer => {
  const plain = Buffer.from(GREY, 'base64')
  return Buffer.concat([
    plain.subarray(0, 20),
    segment(0xe1, exif()),
    segment(0xe1, Buffer.from('http://ns.adobe.com/xap/1.0/\0<GPS-SECRET/>')),
    segment(0xed, Buffer.from('Photoshop 3.0\0GPS-SECRET')),
    segment(0xfe, Buffer.from('GPS-SECRET')),
    plain.subarray(20),
    Buffer.from('GPS-SECRET after the end'),
  ])
}
